#include "client/cli/value_argument.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/input_file.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

// Of a value from a file or pipe, so that an endless one does not eat the machine's memory.
constexpr size_t kInputBytesMax = kGiB;

// Of longer ones the server is asked whether it would take them, before they are read.
constexpr size_t kReadUnaskedBytes = kMiB;

// Nothing: the server does not say.
std::optional<uint64_t> LongestValue(KeyValueStore& store) {
  const absl::StatusOr<KeyValueStore::Statistics> statistics = store.Stats();
  if (!statistics.ok()) return std::nullopt;
  for (const auto& [name, value] : *statistics) {
    uint64_t bytes = 0;
    if (name == "max_value_bytes" && absl::SimpleAtoi(value, &bytes)) return bytes;
  }
  return std::nullopt;
}

ExitCode RefuseAsTooLong(Invocation& run, std::string_view subject, std::optional<uint64_t> longest,
                         size_t expected) {
  if (longest.has_value() && *longest < kInputBytesMax) {
    const std::string bytes =
        expected > *longest ? absl::StrCat(expected) : absl::StrCat("more than ", *longest);
    return run.Fail(subject,
                    StoreFailure(absl::OutOfRangeError(absl::StrCat(
                        "value of ", bytes, " bytes > --max_value ", *longest, " on the server"))));
  }
  return run.Fail(subject, UsageFailure(absl::StrCat(
                               "the input is longer than ", FormatBytes(kInputBytesMax),
                               ", the most that kvcli takes from a file or pipe; store it under "
                               "several keys, or write it with the client library")));
}

// Bytes of `source` as the value. `expected`: how many there are; 0: not known.
ValueOrExit ReadValue(Invocation& run, std::string_view subject, ByteSource& source,
                      size_t expected = 0) {
  std::string value;
  absl::StatusOr<bool> ended =
      ReadUpTo(source, kReadUnaskedBytes, value, std::min(expected, kReadUnaskedBytes));
  if (ended.ok() && !*ended) {
    KeyValueStore* store = run.Store();
    if (store == nullptr) return {{}, run.connect_failure()};
    const std::optional<uint64_t> longest = LongestValue(*store);
    const size_t bytes_max = std::min<uint64_t>(longest.value_or(kInputBytesMax), kInputBytesMax);
    if (expected <= bytes_max) ended = ReadUpTo(source, bytes_max, value, expected);
    if (ended.ok() && !*ended) return {{}, RefuseAsTooLong(run, subject, longest, expected)};
  }
  if (!ended.ok()) return {{}, run.Fail(subject, LocalIoFailure(ended.status()))};
  return {std::move(value)};
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
