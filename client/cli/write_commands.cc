// put, cas, append, prepend, del: what is written, an item at a time.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/invocation.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "client/cli/value_argument.h"
#include "client/cli/write_flags.h"

namespace kvd::cli {
namespace {

constexpr Flag kPutFlags[] = {kTtlFlag, kExpireAtFlag, kUserFlagsFlag, kIfFlag, kLiteralFlag};
constexpr Flag kCasFlags[] = {kTtlFlag, kExpireAtFlag, kUserFlagsFlag, kLiteralFlag};
constexpr Flag kAppendFlags[] = {kTtlFlag, kExpireAtFlag, kIfThereFlag, kLiteralFlag};
constexpr Flag kDelFlags[] = {kIfVersionFlag};

constexpr std::string_view kNothingJoined =
    "not found, and --if asks for an item, so nothing was stored; leave --if out to store VALUE "
    "alone";

void PrintWritten(Invocation& run, std::string_view key, uint64_t version) {
  std::string text = "OK\n";
  if (run.format() == OutputFormat::kJson) {
    text = "{";
    AppendJsonBytes("key", key, run.byte_text(), text);
    absl::StrAppend(&text, ",\"version\":", JsonNumber(version), "}\n");
  }
  run.console().out.Write(text);
}

using Write = absl::StatusOr<uint64_t> (KeyValueStore::*)(std::string_view key,
                                                          std::string_view value,
                                                          const WriteOptions& options);

// The key is the first argument; `value_index` is where the value is.
ExitCode WriteValue(Invocation& run, const WriteOptions& options, size_t value_index, Write write) {
  const std::string& subject = run.arguments().front();
  std::string key;
  if (!run.BytesOfArgument(subject, key)) return ExitCode::kUsage;
  const ValueOrExit input = TakeValue(run, value_index);
  if (!input.value.has_value()) return input.exit;
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  const absl::StatusOr<uint64_t> version = (store->*write)(key, *input.value, options);
  if (!version.ok()) return run.FailOfStore(subject, version.status());
  PrintWritten(run, key, *version);
  NoteOfPast(run, subject, options, *store);
  return ExitCode::kDone;
}

ExitCode WriteAsFlagsSay(Invocation& run, Write write) {
  const std::optional<WriteOptions> options = WriteOptionsOf(run, run.arguments().front());
  return options.has_value() ? WriteValue(run, *options, 1, write) : ExitCode::kUsage;
}

ExitCode RunPut(Invocation& run) { return WriteAsFlagsSay(run, &KeyValueStore::Put); }
ExitCode RunAppend(Invocation& run) { return WriteAsFlagsSay(run, &KeyValueStore::Append); }
ExitCode RunPrepend(Invocation& run) { return WriteAsFlagsSay(run, &KeyValueStore::Prepend); }

ExitCode RunCas(Invocation& run) {
  const std::string& subject = run.arguments().front();
  std::optional<WriteOptions> options = WriteOptionsOf(run, subject);
  if (!options.has_value()) return ExitCode::kUsage;
  const std::optional<uint64_t> version = ParseVersion(run.arguments()[1]);
  if (!version.has_value()) {
    return run.Fail(subject, UsageFailure(absl::StrCat(Quoted(run.arguments()[1]),
                                                       " is no version; give one that 'kvcli get "
                                                       "-w json' shows")));
  }
  options->condition = {Condition::Kind::kIfVersion, *version};
  return WriteValue(run, *options, 2, &KeyValueStore::Put);
}

ExitCode RunDel(Invocation& run) {
  const std::optional<WriteOptions> options = WriteOptionsOf(run, run.arguments().front());
  if (!options.has_value()) return ExitCode::kUsage;
  std::vector<std::string> keys;
  if (!run.BytesOfArguments(0, keys)) return ExitCode::kUsage;
  if (keys.size() > 1 && options->condition.kind != Condition::Kind::kNone) {
    return run.Fail("", UsageFailure("a version is of one key; give one key with --if"));
  }
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  size_t deleted = 0;
  ExitCode exit = ExitCode::kDone;
  for (size_t i = 0; i < keys.size(); ++i) {
    const absl::Status status = store->Delete(keys[i], *options);
    if (status.ok()) {
      ++deleted;
      continue;
    }
    exit = run.FailOfStore(run.arguments()[i], status);
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
        "input if that is no terminal; where nothing comes from there, as from /dev/null, the\n"
        "value is empty. For a value that is itself - or begins with @, add --literal; for any\n"
        "bytes whatever, use standard input. With --hex only arguments are hexadecimal, never "
        "what\n"
        "a file or pipe holds. What is longer than the server's --max_value is not read to its\n"
        "end, and refused with exit status 5; kvcli takes 1 GiB at most from a file or pipe, and\n"
        "exits 2 where there is more.\n"
        "Without --ttl and --expire_at the item never expires, whatever it did before.\n"
        "Exit status 1: the condition of --if did not hold; the message says the version that\n"
        "there is.\n",
    .not_found =
        "not found, and --if asks for an item, so nothing was stored; leave --if out to store one",
    .examples =
        "kvcli put greeting hello\n"
        "kvcli put picture @picture.png\n"
        "kvcli put picture < picture.png\n"
        "date | kvcli put now -\n"
        "kvcli put session:17 token --ttl=30m\n"
        "kvcli put lock me --if=absent --ttl=10\n"
        "kvcli put user --literal @name\n",
    .flags = kPutFlags,
    .arguments_min = 1,
    .arguments_max = 2,
    .run = RunPut,
};

constinit const Command kCasCommand = {
    .name = "cas",
    .arguments = "KEY VERSION [VALUE|-|@FILE]",
    .summary = "store a value if the item's version is the one given",
    .details =
        "Compare and set: put with --if=version:VERSION. 'kvcli get KEY -w json' and 'kvcli put\n"
        "KEY VALUE -w json' print versions. VALUE as for put.\n"
        "Exit status 1: the item has another version, which the message says, or there is none.\n",
    .not_found =
        "not found, so it has no version and nothing was stored; 'kvcli put KEY VALUE --if=absent' "
        "stores a first value",
    .examples =
        "kvcli get config -w json\n"
        "kvcli cas config 1839107486020167680 @new.json\n",
    .flags = kCasFlags,
    .arguments_min = 2,
    .arguments_max = 3,
    .run = RunCas,
};

constinit const Command kAppendCommand = {
    .name = "append",
    .arguments = "KEY [VALUE|-|@FILE]",
    .summary = "put a value behind the one that is there",
    .details =
        "A key without an item gets VALUE alone, unless --if asks for one. VALUE as for put.\n"
        "Without --ttl and --expire_at the item expires when it would have.\n",
    .not_found = kNothingJoined,
    .examples =
        "kvcli append log 'one more line,'\n"
        "kvcli append log @line --if=present\n",
    .flags = kAppendFlags,
    .arguments_min = 1,
    .arguments_max = 2,
    .run = RunAppend,
};

constinit const Command kPrependCommand = {
    .name = "prepend",
    .arguments = "KEY [VALUE|-|@FILE]",
    .summary = "put a value before the one that is there",
    .details =
        "A key without an item gets VALUE alone, unless --if asks for one. VALUE as for put.\n"
        "Without --ttl and --expire_at the item expires when it would have.\n",
    .not_found = kNothingJoined,
    .examples = "kvcli prepend log 'newest first,'\n",
    .flags = kAppendFlags,
    .arguments_min = 1,
    .arguments_max = 2,
    .run = RunPrepend,
};

constinit const Command kDelCommand = {
    .name = "del",
    .arguments = "KEY...",
    .summary = "delete keys, and print how many were there",
    .details =
        "Exit status 1: at least one was not there; the others are deleted all the same. Or the\n"
        "condition of --if, which goes with one key, did not hold.\n",
    .not_found =
        "not found, so there was nothing to delete; 'kvcli scan' lists the keys that are there",
    .examples =
        "kvcli del greeting\n"
        "kvcli del a b c\n"
        "kvcli del lock --if=version:1839107486020167680\n",
    .flags = kDelFlags,
    .arguments_min = 1,
    .arguments_max = kAnyNumber,
    .run = RunDel,
};

}  // namespace kvd::cli
