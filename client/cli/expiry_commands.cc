// touch, ttl: when items expire.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/invocation.h"
#include "client/cli/item_text.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "client/cli/time_text.h"
#include "client/cli/write_flags.h"

namespace kvd::cli {
namespace {

constexpr Flag kTouchFlags[] = {kTtlFlag, kExpireAtFlag, kIfVersionFlag};

ExitCode RunTouch(Invocation& run) {
  const std::string& subject = run.arguments().front();
  const std::optional<WriteOptions> options = WriteOptionsOf(run, subject);
  if (!options.has_value()) return ExitCode::kUsage;
  std::string key;
  if (!run.BytesOfArgument(subject, key)) return ExitCode::kUsage;
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  const absl::StatusOr<uint64_t> version = store->Touch(key, *options);
  if (!version.ok()) return run.FailOfStore(subject, version.status());
  std::string text = "OK\n";
  if (run.format() == OutputFormat::kJson) {
    text = "{";
    AppendJsonBytes("key", key, run.byte_text(), text);
    absl::StrAppend(&text, ",\"version\":", JsonNumber(*version), "}\n");
  }
  run.console().out.Write(text);
  NoteOfPast(run, subject, *options, *store);
  return ExitCode::kDone;
}

void PrintTimeLeft(Invocation& run, std::string_view key, const ItemInfo& info, int64_t now_us) {
  const bool expires = info.expiry_unix_us != 0;
  // It was there a moment ago, so there is some time left.
  const int64_t left_us = std::max<int64_t>(1, info.expiry_unix_us - now_us);
  std::string text;
  switch (run.format()) {
    case OutputFormat::kSimple:
      text = expires ? absl::StrCat((left_us + 999'999) / 1'000'000, "\n") : "-1\n";
      break;
    case OutputFormat::kJson:
      text = "{";
      AppendJsonBytes("key", key, run.byte_text(), text);
      absl::StrAppend(&text, ",\"ttl_seconds\":", expires ? SecondsText(left_us) : "null");
      AppendJsonTraits({info.expiry_unix_us, 0}, text);
      absl::StrAppend(&text, ",\"version\":", JsonNumber(info.version), "}\n");
      break;
    case OutputFormat::kTable:
      text = FormatTable({"KEY", "SECONDS LEFT", "EXPIRES AT"},
                         {{CellText(key, run.hex()), expires ? SecondsText(left_us) : "-1",
                           expires ? MomentText(info.expiry_unix_us) : "never"}});
      break;
  }
  run.console().out.Write(text);
}

ExitCode RunTtl(Invocation& run) {
  const std::string& subject = run.arguments().front();
  std::string key;
  if (!run.BytesOfArgument(subject, key)) return ExitCode::kUsage;
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  std::string value;
  ItemInfo info;
  if (const absl::Status status = store->Get(key, value, info); !status.ok()) {
    return run.FailOfStore(subject, status);
  }
  PrintTimeLeft(run, key, info, store->ServerUnixUs());
  return ExitCode::kDone;
}

}  // namespace

constinit const Command kTouchCommand = {
    .name = "touch",
    .arguments = "KEY",
    .summary = "set when an item expires",
    .details =
        "Without --ttl and --expire_at it never expires any more. The value stays; the version is\n"
        "a new one. 'kvcli get KEY --touch' prints the value at the same time.\n"
        "Exit status 1: there is no such key, or it has another version.\n",
    .not_found =
        "not found, so there is nothing that could expire; 'kvcli put KEY VALUE --ttl=TIME' stores "
        "an item that does",
    .examples =
        "kvcli touch session:17 --ttl=30m\n"
        "kvcli touch session:17\n",
    .flags = kTouchFlags,
    .arguments_min = 1,
    .arguments_max = 1,
    .run = RunTouch,
};

constinit const Command kTtlCommand = {
    .name = "ttl",
    .arguments = "KEY",
    .summary = "print in how many seconds an item expires",
    .details =
        "Whole seconds, rounded up; -1 for an item that never expires. With -w json and -w table\n"
        "to the microsecond, and the moment by kvd's clock.\n"
        "Exit status 1: there is no such key, or it has expired.\n",
    .examples =
        "kvcli ttl session:17\n"
        "kvcli ttl session:17 -w json\n",
    .flags = {},
    .arguments_min = 1,
    .arguments_max = 1,
    .run = RunTtl,
};

}  // namespace kvd::cli
