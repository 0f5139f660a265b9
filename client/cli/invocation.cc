#include "client/cli/invocation.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"

namespace kvd::cli {

OutputFormat Invocation::format() const {
  const std::string& word = flags_.Text("write_out");
  return word == "json"    ? OutputFormat::kJson
         : word == "table" ? OutputFormat::kTable
                           : OutputFormat::kSimple;
}

KeyValueStore* Invocation::Store(uint32_t credits) {
  const std::string& target = flags_.Text("server");
  const absl::StatusOr<KeyValueStore*> store = TryStore(target, credits);
  if (!store.ok()) {
    const std::string subject = arguments_.empty() ? "" : arguments_.front();
    connect_failure_ = Fail(subject, ConnectFailure(target, store.status()));
    return nullptr;
  }
  return *store;
}

absl::StatusOr<KeyValueStore*> Invocation::TryStore(const std::string& target, uint32_t credits,
                                                    uint32_t location_cache_entries) {
  ConnectOptions options = ConnectOptionsOf(flags_);
  options.location_cache_entries = location_cache_entries;
  options.credits = credits;
  options.for_administration = command_.for_administration;
  KVD_ASSIGN_OR_RETURN(KeyValueStore * store, session_.Store(target, options));
  store->SetDeadline(flags_.IsSet("deadline") ? std::optional(flags_.Duration("deadline"))
                                              : std::nullopt);
  return store;
}

bool Invocation::BytesOfArgument(std::string_view argument, std::string& bytes) {
  if (!hex()) {
    bytes = argument;
    return true;
  }
  std::optional<std::string> decoded = BytesOfHex(argument);
  if (!decoded.has_value()) {
    Fail(argument,
         UsageFailure("not hexadecimal; with --hex give keys and values as two digits a byte"));
    return false;
  }
  bytes = *std::move(decoded);
  return true;
}

bool Invocation::BytesOfArguments(size_t first, std::vector<std::string>& bytes) {
  for (size_t i = first; i < arguments_.size(); ++i) {
    if (!BytesOfArgument(arguments_[i], bytes.emplace_back())) return false;
  }
  return true;
}

ExitCode Invocation::Fail(std::string_view subject, const Failure& failure) {
  // In the order in which things happened, also where both go to one terminal.
  console_.out.Flush();
  const std::string line = FailureLine(program_, Asked(subject), failure);
  console_.err.Write(console_.colour
                         ? absl::StrCat("\x1b[31m", line.substr(0, line.size() - 1), "\x1b[0m\n")
                         : line);
  console_.err.Flush();
  return failure.code;
}

ExitCode Invocation::FailOfStore(std::string_view subject, const absl::Status& status) {
  Failure failure = StoreFailure(status, command_.name);
  if (absl::IsNotFound(status)) {
    if (!command_.not_found.empty()) failure.text = command_.not_found;
    if (std::exchange(advised_of_missing_keys_, true)) failure.text = "not found";
  }
  return Fail(subject, failure);
}

void Invocation::Note(std::string_view subject, std::string_view text) {
  console_.out.Flush();
  console_.err.Write(FailureLine(program_, Asked(subject), {ExitCode::kDone, std::string(text)}));
  console_.err.Flush();
}

std::string Invocation::Asked(std::string_view subject) const {
  return subject.empty() ? std::string(command_.name)
                         : absl::StrCat(ToAbsl(command_.name), " ", Quoted(subject));
}

}  // namespace kvd::cli
