// put, del: what is written, an item at a time.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/input_file.h"
#include "client/cli/invocation.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

// Of a value from a file or pipe, so that an endless one does not eat the machine's memory.
constexpr size_t kInputBytesMax = kGiB;

constexpr Flag kPutFlags[] = {
    {"literal", '\0', FlagKind::kSwitch, "", "false",
     "VALUE is what it says, also where it is - or begins with @"},
};

// Bytes of `source` as the value. Nothing: it could not be read, which has been reported.
std::optional<std::string> ReadValue(Invocation& run, std::string_view subject,
                                     ByteSource& source) {
  absl::StatusOr<std::string> value = ReadAll(source, kInputBytesMax);
  if (value.ok()) return *std::move(value);
  if (absl::IsResourceExhausted(value.status())) {
    run.Fail(subject, StoreFailure(absl::OutOfRangeError(value.status().message())));
  } else {
    run.Fail(subject, LocalIoFailure(value.status()));
  }
  return std::nullopt;
}

struct ValueOrExit {
  std::optional<std::string> value;
  ExitCode exit = ExitCode::kDone;
};

ValueOrExit ValueFromInput(Invocation& run, std::string_view subject) {
  if (run.console().in_is_commands) {
    return {{},
            run.Fail(subject, UsageFailure("commands come from standard input, so no value can; "
                                           "give it as VALUE or @FILE"))};
  }
  std::optional<std::string> value = ReadValue(run, subject, run.console().in);
  return {std::move(value), ExitCode::kLocalIo};
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
  std::optional<std::string> value = ReadValue(run, subject, source);
  return {std::move(value), ExitCode::kLocalIo};
}

ValueOrExit TakeValue(Invocation& run) {
  const std::vector<std::string>& arguments = run.arguments();
  const std::string& subject = arguments.front();
  if (arguments.size() == 1) {
    if (run.console().in_is_terminal || run.console().in_is_commands) {
      return {{},
              run.Fail(subject, UsageFailure("VALUE is missing; give VALUE, - or @FILE, or "
                                             "redirect standard input"))};
    }
    return ValueFromInput(run, subject);
  }
  const std::string& argument = arguments[1];
  if (!run.flags().Switch("literal")) {
    if (argument == "-") return ValueFromInput(run, subject);
    if (argument.starts_with('@')) return ValueFromFile(run, subject, argument.substr(1));
  }
  std::string value;
  if (!run.BytesOfArgument(argument, value)) return {{}, ExitCode::kUsage};
  return {std::move(value)};
}

void PrintPut(Invocation& run, std::string_view key, uint64_t version) {
  std::string text = "OK\n";
  if (run.format() == OutputFormat::kJson) {
    text = "{";
    AppendJsonBytes("key", key, run.byte_text(), text);
    absl::StrAppend(&text, ",\"version\":", JsonNumber(version), "}\n");
  }
  run.console().out.Write(text);
}

ExitCode RunPut(Invocation& run) {
  const std::string& subject = run.arguments().front();
  std::string key;
  if (!run.BytesOfArgument(subject, key)) return ExitCode::kUsage;
  const ValueOrExit input = TakeValue(run);
  if (!input.value.has_value()) return input.exit;
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  const absl::StatusOr<uint64_t> version = store->Put(key, *input.value);
  if (!version.ok()) return run.Fail(subject, StoreFailure(version.status()));
  PrintPut(run, key, *version);
  return ExitCode::kDone;
}

ExitCode RunDel(Invocation& run) {
  std::vector<std::string> keys;
  if (!run.BytesOfArguments(0, keys)) return ExitCode::kUsage;
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  size_t deleted = 0;
  ExitCode exit = ExitCode::kDone;
  for (size_t i = 0; i < keys.size(); ++i) {
    const absl::Status status = store->Delete(keys[i]);
    if (status.ok()) {
      ++deleted;
      continue;
    }
    exit = run.FailOfKey(run.arguments()[i], status);
    if (!absl::IsNotFound(status)) break;
  }
  std::string text = absl::StrCat(deleted, "\n");
  if (run.format() == OutputFormat::kJson) text = absl::StrCat("{\"deleted\":", deleted, "}\n");
  if (run.format() == OutputFormat::kTable) {
    text = FormatTable({"DELETED", "OF"}, {{absl::StrCat(deleted), absl::StrCat(keys.size())}});
  }
  run.console().out.Write(text);
  return exit;
}

}  // namespace

constinit const Command kPutCommand = {
    .name = "put",
    .arguments = "KEY [VALUE|-|@FILE]",
    .summary = "store a value under a key",
    .details =
        "VALUE as it is; - for standard input; @FILE for a file's bytes. Without VALUE, standard\n"
        "input if that is no terminal. For a value that is itself - or begins with @, add\n"
        "--literal; for any bytes whatever, use standard input. From files and pipes at most\n"
        "1 GiB. With --hex only arguments are hexadecimal, never what a file or pipe holds.\n",
    .examples =
        "kvcli put greeting hello\n"
        "kvcli put picture @picture.png\n"
        "kvcli put picture < picture.png\n"
        "date | kvcli put now -\n"
        "kvcli put user --literal @name\n"
        "kvcli put temperature -- -5\n",
    .flags = kPutFlags,
    .arguments_min = 1,
    .arguments_max = 2,
    .run = RunPut,
};

constinit const Command kDelCommand = {
    .name = "del",
    .arguments = "KEY...",
    .summary = "delete keys, and print how many were there",
    .details = "Exit status 1: at least one was not there; the others are deleted all the same.\n",
    .examples =
        "kvcli del greeting\n"
        "kvcli del a b c\n",
    .flags = {},
    .arguments_min = 1,
    .arguments_max = kAnyNumber,
    .run = RunDel,
};

}  // namespace kvd::cli
