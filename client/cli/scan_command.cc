#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/item_text.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace kvd::cli {
namespace {

constexpr Flag kScanFlags[] = {
    {"prefix", '\0', FlagKind::kText, "P", "", "only keys that begin with P"},
    {"limit", '\0', FlagKind::kCount, "N", "0", "stop after N keys; 0: none"},
};

std::string JsonLine(std::string_view key, size_t value_bytes, const ItemInfo& info,
                     ByteText form) {
  std::string text = "{";
  AppendJsonBytes("key", key, form, text);
  absl::StrAppend(&text, ",\"value_bytes\":", value_bytes,
                  ",\"version\":", JsonNumber(info.version), "}\n");
  return text;
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
  uint64_t count = 0;
  const absl::Status status =
      store->Scan([&](std::string_view key, std::string_view value, const ItemInfo& info) {
        if (!console.out.ok() || console.interrupted()) return false;
        if (!key.starts_with(prefix)) return true;
        if (format == OutputFormat::kTable) {
          rows.push_back(
              {CellText(key, style.hex), absl::StrCat(value.size()), absl::StrCat(info.version)});
        } else if (format == OutputFormat::kJson) {
          console.out.Write(JsonLine(key, value.size(), info, run.byte_text()));
        } else {
          console.out.Write(LineText(key, style) + "\n");
        }
        return ++count != limit;
      });
  if (format == OutputFormat::kTable) {
    console.out.Write(FormatTable({"KEY", "VALUE BYTES", "VERSION"}, rows));
  }
  if (!status.ok()) return run.Fail("", StoreFailure(status));
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
        "newlines, use -w json, which also tells versions and lengths. With --hex, P is\n"
        "hexadecimal too. The whole store is read, whatever P is.\n",
    .examples =
        "kvcli scan\n"
        "kvcli scan --prefix=user: --limit=20\n"
        "kvcli scan -w json\n",
    .flags = kScanFlags,
    .arguments_min = 0,
    .arguments_max = 0,
    .run = RunScan,
};

}  // namespace kvd::cli
