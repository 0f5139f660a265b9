#include "client/cli/value_argument.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/input_file.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

// Of a value from a file or pipe, so that an endless one does not eat the machine's memory.
constexpr size_t kInputBytesMax = kGiB;

// Bytes of `source` as the value.
ValueOrExit ReadValue(Invocation& run, std::string_view subject, ByteSource& source,
                      size_t expected = 0) {
  absl::StatusOr<std::string> value = ReadAll(source, kInputBytesMax, expected);
  if (value.ok()) return {*std::move(value)};
  if (absl::IsResourceExhausted(value.status())) {
    const absl::Status too_long = absl::OutOfRangeError(value.status().message());
    return {{}, run.Fail(subject, StoreFailure(too_long))};
  }
  return {{}, run.Fail(subject, LocalIoFailure(value.status()))};
}

ValueOrExit ValueFromInput(Invocation& run, std::string_view subject) {
  if (run.console().in_is_commands) {
    return {{},
            run.Fail(subject, UsageFailure("commands come from standard input, so no value can; "
                                           "give it as VALUE or @FILE"))};
  }
  return ReadValue(run, subject, run.console().in);
}

ValueOrExit ValueFromFile(Invocation& run, std::string_view subject, const std::string& path) {
  if (path.empty()) {
    return {{},
            run.Fail(subject, UsageFailure("@ names no file; give @FILE, or add --literal to store "
                                           "the @ itself"))};
  }
  absl::StatusOr<UniqueFd> file = OpenForReading(path);
  if (!file.ok()) {
    const absl::Status status(
        file.status().code(),
        absl::StrCat(file.status().message(), "; to store the text itself add --literal"));
    return {{}, run.Fail(subject, LocalIoFailure(status))};
  }
  FdSource source(file->get(), path);
  return ReadValue(run, subject, source, KnownBytes(file->get()).value_or(0));
}

}  // namespace

ValueOrExit TakeValue(Invocation& run, size_t index) {
  const std::vector<std::string>& arguments = run.arguments();
  const std::string& subject = arguments.front();
  if (arguments.size() <= index) {
    if (run.console().in_is_terminal || run.console().in_is_commands) {
      return {{},
              run.Fail(subject, UsageFailure("VALUE is missing; give VALUE, - or @FILE, or "
                                             "redirect standard input"))};
    }
    return ValueFromInput(run, subject);
  }
  const std::string& argument = arguments[index];
  if (!run.flags().Switch("literal")) {
    if (argument == "-") return ValueFromInput(run, subject);
    if (argument.starts_with('@')) return ValueFromFile(run, subject, argument.substr(1));
  }
  std::string value;
  if (!run.BytesOfArgument(argument, value)) return {{}, ExitCode::kUsage};
  return {std::move(value)};
}

}  // namespace kvd::cli
