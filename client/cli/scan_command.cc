#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/item_text.h"
#include "client/cli/prefix_flag.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace kvd::cli {
namespace {

constexpr Flag kScanFlags[] = {
    kPrefixFlag,
    {"limit", '\0', FlagKind::kCount, "N", "0", "stop after N keys; 0: at the end"},
    {"cursor", '\0', FlagKind::kText, "C", "",
     "go on where a scan with --cursor ended; --cursor= begins one", false},
};

std::string JsonLine(std::string_view key, size_t value_bytes, const ItemInfo& info,
                     ByteText form) {
  std::string text = "{";
  AppendJsonBytes("key", key, form, text);
  absl::StrAppend(&text, ",\"value_bytes\":", value_bytes,
                  ",\"version\":", JsonNumber(info.version));
  AppendJsonTraits({info.expiry_unix_us, info.user_flags}, text);
  return text + "}\n";
}

// Where the next part begins, for whoever reads parts.
void PrintCursor(Invocation& run, const std::string& cursor) {
  if (run.format() == OutputFormat::kJson) {
    run.console().out.Write(absl::StrCat("{\"cursor\":\"", cursor, "\"}\n"));
  } else {
    run.Note("", cursor.empty() ? std::string("this was the last part")
                                : absl::StrCat("there is more; go on with --cursor=", cursor));
  }
}

ExitCode FailOfScan(Invocation& run, const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return run.FailOfStore("", status);
  return run.Fail("",
                  {ExitCode::kRefused, absl::StrCat(status.message(), "; --cursor= begins one")});
}

ExitCode RunScan(Invocation& run) {
  std::string prefix;
  if (!run.BytesOfArgument(run.flags().Text("prefix"), prefix)) return ExitCode::kUsage;
  const uint64_t limit = run.flags().Count("limit");
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();

  Console& console = run.console();
  const InterruptGuard guard;
  const OutputFormat format = run.format();
  const TextStyle style = {run.hex(), console.out_is_terminal};
  std::vector<std::vector<std::string>> rows;
  // A part ends between buckets, so that the next one neither repeats nor leaves out anything.
  const bool in_parts = run.flags().IsSet("cursor");
  uint64_t count = 0;
  const absl::StatusOr<std::string> cursor = store->Scan(
      [&](std::string_view key, std::string_view value, const ItemInfo& info) {
        if (!console.out.ok() || console.interrupted()) return false;
        if (format == OutputFormat::kTable) {
          rows.push_back(
              {CellText(key, style.hex), absl::StrCat(value.size()), absl::StrCat(info.version)});
        } else if (format == OutputFormat::kJson) {
          console.out.Write(JsonLine(key, value.size(), info, run.byte_text()));
        } else {
          console.out.Write(LineText(key, style) + "\n");
        }
        return ++count != limit || in_parts;
      },
      {.prefix = prefix, .cursor = run.flags().Text("cursor"), .count = in_parts ? limit : 0});
  if (format == OutputFormat::kTable) {
    console.out.Write(FormatTable({"KEY", "VALUE BYTES", "VERSION"}, rows));
  }
  if (!cursor.ok()) return FailOfScan(run, cursor.status());
  if (count == 0 && !in_parts && !console.interrupted()) NoteOfPattern(run);
  if (in_parts && !console.interrupted()) PrintCursor(run, *cursor);
  return console.interrupted() ? ExitCode::kInterrupted : ExitCode::kDone;
}

}  // namespace

constinit const Command kScanCommand = {
    .name = "scan",
    .arguments = "",
    .summary = "print keys, one a line",
    .details =
        "In no order. A key that is there all the time is printed; one that is written or\n"
        "deleted meanwhile may be printed once, twice or not at all. Where keys may hold\n"
        "newlines, use -w json, which also tells versions, lengths and expiry. With --hex, P is\n"
        "hexadecimal too. The whole store is read, whatever P is.\n"
        "In parts: --cursor= with --limit=N ends after N keys or a few more, and says on standard\n"
        "error (with -w json in a last line {\"cursor\":\"...\"}) how to go on; an empty cursor is "
        "the\n"
        "end. A cursor is of no use once kvd was restarted: exit status 5.\n",
    .examples =
        "kvcli scan\n"
        "kvcli scan --prefix=user: --limit=20\n"
        "kvcli scan -w json\n"
        "kvcli scan --limit=1000 --cursor= -w json\n",
    .flags = kScanFlags,
    .arguments_min = 0,
    .arguments_max = 0,
    .run = RunScan,
};

}  // namespace kvd::cli
