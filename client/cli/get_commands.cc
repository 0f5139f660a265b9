// get, mget, exists: what is read.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/invocation.h"
#include "client/cli/item_text.h"
#include "client/cli/table.h"
#include "client/cli/write_flags.h"

namespace kvd::cli {
namespace {

constexpr Flag kGetFlags[] = {
    {"touch", '\0', FlagKind::kSwitch, "", "false",
     "also set when the item expires, as --ttl or --expire_at says; never, without them", false},
    kTtlFlag,
    kExpireAtFlag,
};

TextStyle StyleOf(Invocation& run) { return {run.hex(), run.console().out_is_terminal}; }

// What -w json has, which leaves out zeros.
std::vector<std::string> Columns() {
  return {"KEY", "VALUE", "VERSION", "USER_FLAGS", "EXPIRY_UNIX_US"};
}

std::vector<std::string> Row(Invocation& run, std::string_view key, std::string_view value,
                             const ItemInfo& info) {
  return {CellText(key, run.hex()), CellText(value, run.hex()), absl::StrCat(info.version),
          info.user_flags == 0 ? "" : absl::StrCat(info.user_flags),
          info.expiry_unix_us == 0 ? "" : absl::StrCat(info.expiry_unix_us)};
}

// A terminal's next line begins at its left; values of several commands are told apart.
bool NewlineFollows(Invocation& run, std::string_view value) {
  if (run.hex()) return true;
  if (run.console().out_is_terminal) return !value.ends_with('\n');
  return run.console().in_is_commands;
}

ExitCode RunGet(Invocation& run) {
  const std::string& argument = run.arguments().front();
  const std::optional<WriteOptions> options = WriteOptionsOf(run, argument);
  if (!options.has_value()) return ExitCode::kUsage;
  if (!run.flags().Switch("touch") && (options->ttl.count() != 0 || options->expiry_unix_us != 0)) {
    return run.Fail(argument, UsageFailure("--ttl and --expire_at go with --touch; add it"));
  }
  std::string key;
  if (!run.BytesOfArgument(argument, key)) return ExitCode::kUsage;
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  std::string value;
  ItemInfo info;
  const absl::Status status = run.flags().Switch("touch")
                                  ? store->GetAndTouch(key, value, info, *options)
                                  : store->Get(key, value, info);
  if (!status.ok()) return run.FailOfStore(argument, status);
  ByteSink& out = run.console().out;
  std::string text;
  switch (run.format()) {
    case OutputFormat::kSimple:
      if (run.hex() || run.console().out_is_terminal) {
        out.Write(ValueText(value, StyleOf(run)));
      } else {
        out.Write(value);  // it may be long
      }
      if (NewlineFollows(run, value)) out.Write("\n");
      break;
    case OutputFormat::kJson:
      AppendItemJson(key, value, info, run.byte_text(), text);
      out.Write(text);
      break;
    case OutputFormat::kTable:
      out.Write(FormatTable(Columns(), {Row(run, key, value, info)}));
      break;
  }
  NoteOfPast(run, argument, *options, *store);
  return ExitCode::kDone;
}

void PrintMissing(Invocation& run, std::string_view key) {
  std::string text;
  if (run.format() == OutputFormat::kJson) {
    text += '{';
    AppendJsonBytes("key", key, run.byte_text(), text);
    text += ",\"value\":null}";
  } else if (run.console().out_is_terminal) {
    text = "(nil)";
  }
  run.console().out.Write(text + "\n");
}

void PrintFound(Invocation& run, std::string_view key, std::string_view value,
                const ItemInfo& info) {
  std::string text;
  if (run.format() == OutputFormat::kJson) {
    AppendItemJson(key, value, info, run.byte_text(), text);
  } else {
    text = LineText(value, StyleOf(run)) + "\n";
  }
  run.console().out.Write(text);
}

// How many values are held at once.
constexpr size_t kBatchKeys = 64;

ExitCode RunMget(Invocation& run) {
  std::vector<std::string> keys;
  if (!run.BytesOfArguments(0, keys)) return ExitCode::kUsage;
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  const bool table = run.format() == OutputFormat::kTable;
  std::vector<std::vector<std::string>> rows;
  ExitCode exit = ExitCode::kDone;
  std::vector<Got> batch;
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t at = i % kBatchKeys;
    if (at == 0) {
      const size_t count = std::min(kBatchKeys, keys.size() - i);
      batch = store->MultiGet(std::span<const std::string>(keys).subspan(i, count));
    }
    const auto& [status, value, info] = batch[at];
    if (!status.ok()) {
      if (!absl::IsNotFound(status)) return run.FailOfStore(run.arguments()[i], status);
      if (!table) PrintMissing(run, keys[i]);
      exit = run.FailOfStore(run.arguments()[i], status);
    } else if (table) {
      rows.push_back(Row(run, keys[i], value, info));
    } else {
      PrintFound(run, keys[i], value, info);
    }
  }
  if (table) run.console().out.Write(FormatTable(Columns(), rows));
  return exit;
}

ExitCode RunExists(Invocation& run) {
  std::vector<std::string> keys;
  if (!run.BytesOfArguments(0, keys)) return ExitCode::kUsage;
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  size_t found = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const absl::StatusOr<bool> exists = store->Exists(keys[i]);
    if (!exists.ok()) return run.FailOfStore(run.arguments()[i], exists.status());
    found += *exists ? 1 : 0;
  }
  ByteSink& out = run.console().out;
  switch (run.format()) {
    case OutputFormat::kSimple:
      out.Write(absl::StrCat(found, "\n"));
      break;
    case OutputFormat::kJson:
      out.Write(absl::StrCat("{\"exists\":", found, ",\"of\":", keys.size(), "}\n"));
      break;
    case OutputFormat::kTable:
      out.Write(FormatTable({"EXISTS", "OF"}, {{absl::StrCat(found), absl::StrCat(keys.size())}}));
      break;
  }
  return found == keys.size() ? ExitCode::kDone : ExitCode::kNotFound;
}

}  // namespace

constinit const Command kGetCommand = {
    .name = "get",
    .arguments = "KEY",
    .summary = "print the value of a key",
    .details =
        "Into a pipe or file the value goes byte for byte, with nothing added. On a terminal a\n"
        "newline follows, and bytes that could steer it are shown as \\xNN. Where kvcli reads its\n"
        "commands from a pipe or file, a newline follows each value.\n"
        "With --touch it is a request to kvd, and the item has a new version; otherwise kvd does\n"
        "not notice. Exit status 1: there is no such key.\n",
    .examples =
        "kvcli get greeting\n"
        "kvcli get picture > picture.png\n"
        "kvcli get picture -w json\n"
        "kvcli get session:17 --touch --ttl=30m\n"
        "kvcli get --hex 00ff\n"
        "kvcli get -- --a-key-with-dashes\n",
    .flags = kGetFlags,
    .arguments_min = 1,
    .arguments_max = 1,
    .run = RunGet,
};

constinit const Command kMgetCommand = {
    .name = "mget",
    .arguments = "KEY...",
    .summary = "print the values of several keys, one a line",
    .details =
        "A key that is not there gives an empty line ((nil) on a terminal, \"value\":null with\n"
        "-w json, no row with -w table), a line on standard error, and exit status 1.\n"
        "Where values may hold newlines, use -w json.\n",
    .examples =
        "kvcli mget a b c\n"
        "kvcli mget a b c -w json\n",
    .flags = {},
    .arguments_min = 1,
    .arguments_max = kAnyNumber,
    .run = RunMget,
};

constinit const Command kExistsCommand = {
    .name = "exists",
    .arguments = "KEY...",
    .summary = "print how many of the keys are there",
    .details =
        "A key that is named twice counts twice. Exit status 0: all are there; 1: at least one\n"
        "is not.\n",
    .examples =
        "kvcli exists greeting\n"
        "if kvcli exists a b c > /dev/null; then ...\n",
    .flags = {},
    .arguments_min = 1,
    .arguments_max = kAnyNumber,
    .run = RunExists,
};

}  // namespace kvd::cli
