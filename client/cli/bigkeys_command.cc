#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/item_text.h"
#include "client/cli/progress.h"
#include "client/cli/size_census.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

constexpr Flag kBigkeysFlags[] = {
    {"prefix", '\0', FlagKind::kText, "P", "", "only keys that begin with P"},
};

// To the nearest byte, as all sizes for people are: "65 B", "97.7 KiB".
std::string Average(uint64_t sum, uint64_t count) {
  return FormatBytes(count == 0 ? 0 : (sum + count / 2) / count);
}

std::string Share(uint64_t part, uint64_t whole) {
  return absl::StrFormat("%.1f", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string SizeName(const SizeCensus::Class& one) {
  return one.bytes_max == UINT64_MAX ? absl::StrCat("> ", FormatBytes(SizeCensus::kBoundMax))
                                     : absl::StrCat("<= ", FormatBytes(one.bytes_max));
}

std::string Text(Invocation& run, const SizeCensus& census) {
  std::vector<std::vector<std::string>> rows;
  for (const SizeCensus::Class& one : census.classes()) {
    if (one.items == 0) continue;
    rows.push_back({SizeName(one), absl::StrCat(one.items), Share(one.items, census.items()),
                    Average(one.value_bytes, one.items), FormatBytes(one.largest_bytes),
                    CellText(one.largest_key, run.hex())});
  }
  std::string text =
      FormatTable({"VALUE SIZE", "ITEMS", "%", "AVERAGE", "LARGEST", "ITS KEY"}, rows);
  absl::StrAppend(
      &text, census.items(), census.items() == 1 ? " item, " : " items, ", census.expiring(),
      census.expiring() == 1 ? " of them expires\n" : " of them expire\n",
      "keys: ", FormatBytes(census.key_bytes()), ", average ",
      Average(census.key_bytes(), census.items()), "\nvalues: ", FormatBytes(census.value_bytes()),
      ", average ", Average(census.value_bytes(), census.items()), "\n");
  return text;
}

std::string Json(Invocation& run, const SizeCensus& census) {
  std::string text =
      absl::StrCat("{\"items\":", census.items(), ",\"expiring\":", census.expiring(),
                   ",\"key_bytes\":", census.key_bytes(), ",\"value_bytes\":", census.value_bytes(),
                   ",\"classes\":[");
  bool first = true;
  for (const SizeCensus::Class& one : census.classes()) {
    if (one.items == 0) continue;
    absl::StrAppend(&text, first ? "" : ",", "{\"bytes_max\":",
                    one.bytes_max == UINT64_MAX ? "null" : absl::StrCat(one.bytes_max),
                    ",\"items\":", one.items, ",\"value_bytes\":", one.value_bytes,
                    ",\"largest_bytes\":", one.largest_bytes, ",");
    AppendJsonBytes("largest_key", one.largest_key, run.byte_text(), text);
    text += '}';
    first = false;
  }
  return text + "]}\n";
}

ExitCode RunBigkeys(Invocation& run) {
  std::string prefix;
  if (!run.BytesOfArgument(run.flags().Text("prefix"), prefix)) return ExitCode::kUsage;
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  Console& console = run.console();
  const InterruptGuard guard;
  Progress progress(console, "bigkeys", true);
  SizeCensus census;
  const absl::Status status =
      store
          ->Scan(
              [&](std::string_view key, std::string_view value, const ItemInfo& info) {
                if (console.interrupted()) return false;
                census.Add(key, value.size(), info.expiry_unix_us != 0);
                progress.Update({.items = census.items()});
                return true;
              },
              {.prefix = prefix})
          .status();
  progress.Clear();
  // What has been seen is worth showing, however it ended.
  console.out.Write(run.format() == OutputFormat::kJson ? Json(run, census) : Text(run, census));
  if (!status.ok()) return run.FailOfStore("", status);
  if (!console.interrupted()) return ExitCode::kDone;
  run.Note("", "interrupted: this is a part");
  return ExitCode::kInterrupted;
}

}  // namespace

constinit const Command kBigkeysCommand = {
    .name = "bigkeys",
    .arguments = "",
    .summary = "count values by size, with the largest of each class",
    .details =
        "Reads the whole store one-sidedly; kvd does not notice. 'kvcli --bigkeys' is the same.\n"
        "A class holds the values above the class before it; sizes are of values, without keys.\n"
        "An item that is written meanwhile may be counted twice. With --hex, P is hexadecimal\n"
        "too. Ctrl-C prints what was counted so far, with exit status 130.\n",
    .examples =
        "kvcli bigkeys\n"
        "kvcli bigkeys --prefix=user: -w json\n",
    .flags = kBigkeysFlags,
    .arguments_min = 0,
    .arguments_max = 0,
    .run = RunBigkeys,
};

}  // namespace kvd::cli
