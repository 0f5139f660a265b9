#include "client/internal/reply_status.h"

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"

namespace kvd {

namespace {

// Evicting has failed only where the value is long: every other one has room made for it.
absl::Status NoRoom(bool server_evicts) {
  return absl::ResourceExhaustedError(
      server_evicts ? "no room in kvd's memory, and evicting (--evict=lru) made none: a value "
                      "takes one run of memory, and this one "
                      "would take more than can be freed at once; store shorter values, or start "
                      "kvd with a larger --memory or fewer "
                      "--pollers"
                    : "no room in kvd's memory, and it evicts nothing (--evict=none): a value "
                      "takes one run of memory, and 'kvcli stat largest_free_run_bytes' prints how "
                      "long the longest free one is; delete something, or start kvd with a larger "
                      "--memory, or with --evict=lru");
}

}  // namespace

absl::Status StatusOfReply(const ReplyView& reply, const ReplyContext& context) {
  const uint64_t value_bytes = context.value_bytes;
  const absl::string_view text =
      (reply.header.flags & kReplyErrorText) != 0 ? ToAbsl(reply.payload) : absl::string_view();
  switch (static_cast<ReplyStatus>(reply.header.status)) {
    case ReplyStatus::kOk:
      return absl::OkStatus();
    case ReplyStatus::kNotFound:
      return absl::NotFoundError("no such key");
    case ReplyStatus::kConditionFailed:
      return absl::AbortedError(
          reply.header.version == 0
              ? "the condition did not hold: the key has no item"
              : absl::StrCat("the condition did not hold: the key has an item of version ",
                             reply.header.version));
    case ReplyStatus::kTooLarge:
      // A piece that is short enough by itself was to be put to a value that is there.
      return absl::OutOfRangeError(
          value_bytes > reply.header.value_len
              ? absl::StrCat("value of ", value_bytes, " bytes > --max_value ",
                             reply.header.value_len, " on the server")
              : absl::StrCat("with ", value_bytes, value_bytes == 1 ? " byte" : " bytes",
                             " more the value would be longer than "
                             "--max_value ",
                             reply.header.value_len, " on the server; it is unchanged"));
    case ReplyStatus::kNoSpace:
      return NoRoom(context.server_evicts);
    case ReplyStatus::kMalformed:
      return absl::DataLossError(absl::StrCat("the server found the request malformed: ", text));
    case ReplyStatus::kUnsupported:
      return absl::UnimplementedError(
          absl::StrCat("the server does not know this request: ", text));
    case ReplyStatus::kNotPermitted:
      return absl::PermissionDeniedError(absl::StrCat("not permitted: ", text));
    case ReplyStatus::kPullFailed:
      return absl::UnavailableError(absl::StrCat("the server could not fetch the value: ", text));
    case ReplyStatus::kShuttingDown:
      return absl::UnavailableError("the server is shutting down");
    case ReplyStatus::kBusy:
      return absl::UnavailableError(absl::StrCat("the server is busy: ", text));
    case ReplyStatus::kNotNumber:
      return absl::InvalidArgumentError("the value is not a signed 64-bit number in decimal");
    case ReplyStatus::kOverflow:
      return absl::OutOfRangeError(
          "the sum does not fit a signed 64-bit number; the value is unchanged");
    case ReplyStatus::kDamaged:
      return absl::DataLossError(
          "the item is damaged in kvd's memory: its checksum does not match its bytes; put or delete "
          "the key, and look after that machine's memory");
    case ReplyStatus::kInternal:
      break;
  }
  return absl::InternalError(absl::StrCat("server error ", reply.header.status, ": ", text));
}

absl::Status StatusOfWithdrawn(RequestQueue::Progress progress, uint8_t opcode,
                               const absl::Status& away) {
  switch (progress) {
    case RequestQueue::Progress::kSent:
      if (IsWrite(opcode)) {
        return absl::DeadlineExceededError(
            "sent, and not answered in time; it may still take effect: get the key before you try "
            "again");
      }
      if (opcode == static_cast<uint8_t>(Opcode::kFlush)) {
        return absl::DeadlineExceededError(
            "sent, and not answered in time; it may still take effect, and may be done again");
      }
      return absl::DeadlineExceededError("sent, and not answered in time");
    case RequestQueue::Progress::kUnanswered:
      if (!IsWrite(opcode)) break;
      return absl::UnknownError(
          absl::StrCat("sent, and the session ended before the answer: it took effect once or not "
                       "at all; read before you "
                       "write again. There was no new session in time: ",
                       away.message()));
    case RequestQueue::Progress::kUnsent:
      break;
  }
  if (!away.ok()) return away;
  return absl::DeadlineExceededError(
      "not sent: all credits are held by requests that are unanswered");
}

}  // namespace kvd
