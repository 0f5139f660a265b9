#include "client/cli/failure.h"

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"
#include "common/protocol/handshake.h"

namespace kvd::cli {
namespace {

using absl::StatusCode;

struct CodeText {
  StatusCode status;
  ExitCode exit;
  std::string_view advice;
};

constexpr CodeText kCodes[] = {
    {StatusCode::kNotFound, ExitCode::kNotFound, "'kvcli scan' lists the keys that are there"},
    {StatusCode::kAborted, ExitCode::kNotFound, "get the key again, and decide again"},
    {StatusCode::kInvalidArgument, ExitCode::kUsage, ""},  // see the help
    {StatusCode::kOutOfRange, ExitCode::kRefused,
     "store less under one key, or start kvd with a larger --max_value, and where that is a "
     "quarter "
     "of --memory already, with more of that"},
    {StatusCode::kResourceExhausted, ExitCode::kRefused,
     "delete what is not needed, or start kvd with a larger --memory or with --evict=lru"},
    {StatusCode::kDeadlineExceeded, ExitCode::kDeadline,
     "see whether the server answers with 'kvcli ping', or allow more with --deadline"},
    {StatusCode::kUnavailable, ExitCode::kCannotConnect,
     "start kvd, or name where it listens with --server"},
    {StatusCode::kPermissionDenied, ExitCode::kRefused, "run kvcli as a user that kvd admits"},
    {StatusCode::kFailedPrecondition, ExitCode::kRefused,
     "use a kvcli and a kvd of the same version"},
    {StatusCode::kDataLoss, ExitCode::kCorrupt,
     "restart kvd, load its data again, and report this"},
    {StatusCode::kUnknown, ExitCode::kCannotConnect,
     "the write took effect once or not at all: get the key before you try again"},
    {StatusCode::kUnimplemented, ExitCode::kRefused, "use a kvcli and a kvd of the same version"},
};

constexpr CodeText kOther = {StatusCode::kInternal, ExitCode::kCorrupt, "please report this"};

const CodeText& TextOf(StatusCode code) {
  for (const CodeText& text : kCodes) {
    if (text.status == code) return text;
  }
  return kOther;
}

// Whoever waits for this has seen that it does not answer.
constexpr std::string_view kNoAnswer =
    "see on its host whether kvd is stopped or has no processor ('ps -C kvd -o pid,stat': T is "
    "stopped, kill -CONT lets it go on), or allow more with --deadline";

constexpr CodeText kFull = {StatusCode::kUnavailable, ExitCode::kRefused,
                            "try again, or see who has the room with 'kvcli admin sessions'"};

// A server that has no room for another client is there, and says no.
bool IsRefusedAsFull(const absl::Status& status) {
  return absl::IsUnavailable(status) && absl::StartsWith(status.message(), kRefusedAsFull);
}

const CodeText& TextOf(const absl::Status& status) {
  return IsRefusedAsFull(status) ? kFull : TextOf(status.code());
}

std::string WithAdvice(std::string_view wrong, std::string_view advice) {
  if (wrong.find("; ") != std::string_view::npos) return std::string(wrong);
  return absl::StrCat(ToAbsl(wrong), "; ", ToAbsl(advice));
}

// As ErrnoStatus writes it.
bool HasErrno(const absl::Status& status, int error_number) {
  return absl::StrContains(status.message(), absl::StrCat("(errno ", error_number, ")"));
}

void ReplaceAll(std::string_view from, std::string_view to, std::string& text) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

}  // namespace

Failure StoreFailure(const absl::Status& status, std::string_view command) {
  const CodeText& text = TextOf(status);
  if (text.exit == ExitCode::kUsage) return UsageFailure(ToStd(status.message()), command);
  const std::string_view advice =
      command == "ping" && text.exit == ExitCode::kDeadline ? kNoAnswer : text.advice;
  // Of an operation only a key can be missing; which one is in what was asked.
  const std::string_view wrong =
      status.code() == StatusCode::kNotFound ? "not found" : ToStd(status.message());
  return {text.exit, WithAdvice(wrong, advice)};
}

bool IsRdmaTarget(std::string_view target) {
  if (target.starts_with("rdma:")) return true;
  if (target.starts_with("shm:")) return false;
  // A path has its first slash before any colon.
  const size_t end = target.find_first_of("/:");
  return end != std::string_view::npos && target[end] == ':';
}

Failure ConnectFailure(std::string_view target, const absl::Status& status) {
  CodeText text = TextOf(status);
  switch (text.exit) {
    case ExitCode::kUsage:
      text.advice = IsRdmaTarget(target) ? "give --server as rdma:HOST:PORT"
                                         : "give --server as shm:PATH or rdma:HOST:PORT";
      break;
    case ExitCode::kDeadline:
      text.advice = kNoAnswer;
      break;
    case ExitCode::kRefused:
    case ExitCode::kCorrupt:
      break;
    default:
      text = TextOf(StatusCode::kUnavailable);
      if (IsRdmaTarget(target))
        text.advice = "start kvd with --listen, or name where it listens with --server";
  }
  std::string wrong = "cannot connect";
  // The library names the socket in its own text; say the target only where that does not.
  const std::string_view path = target.substr(target.starts_with("shm:") ? 4 : 0);
  if (!path.empty() && status.message().find(ToAbsl(path)) == absl::string_view::npos) {
    absl::StrAppend(&wrong, " to ", Quoted(target));
  }
  absl::StrAppend(&wrong, ": ", status.message());
  Failure failure = {text.exit, WithAdvice(wrong, text.advice)};
  // To most programs a host and a port mean TCP.
  if (text.exit != ExitCode::kUsage && IsRdmaTarget(target) && !target.starts_with("rdma:")) {
    failure.text += " (HOST:PORT is reached by RDMA; a kvd on this host by shm:PATH)";
  }
  return failure;
}

Failure LocalIoFailure(const absl::Status& status) {
  const bool full = HasErrno(status, ENOSPC) || HasErrno(status, EDQUOT) || HasErrno(status, EFBIG);
  return {ExitCode::kLocalIo,
          WithAdvice(ToStd(status.message()),
                     full ? "free some space or use another file" : "use another file")};
}

Failure UsageFailure(std::string_view wrong, std::string_view command) {
  const std::string advice =
      absl::StrCat("see 'kvcli help", command.empty() ? "" : " ", ToAbsl(command), "'");
  return {ExitCode::kUsage, WithAdvice(wrong, advice)};
}

std::string FailureLine(std::string_view program, std::string_view asked, const Failure& failure) {
  const std::string_view colon = asked.empty() ? "" : ": ";
  std::string text = OneLine(failure.text);
  if (program.empty()) {  // at the prompt, where commands are typed without it
    ReplaceAll("'kvcli ", "'", text);
    ReplaceAll("usage: kvcli ", "usage: ", text);
  }
  return absl::StrCat(ToAbsl(program), ToAbsl(asked), ToAbsl(colon), text, "\n");
}

}  // namespace kvd::cli
