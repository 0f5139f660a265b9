#include "client/cli/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

constexpr int64_t kDrawIntervalNs = 100'000'000;

uint64_t PerSecond(uint64_t items, int64_t elapsed_ns) {
  return static_cast<uint64_t>(static_cast<double>(items) * 1e9 /
                               static_cast<double>(std::max<int64_t>(elapsed_ns, 1)));
}

std::string Bar(uint64_t percent, size_t width) {
  const size_t filled = width * percent / 100;
  std::string bar(width, ' ');
  std::fill_n(bar.begin(), filled, '=');
  if (filled < width) bar[filled] = '>';
  return absl::StrCat("[", bar, "] ", absl::StrFormat("%3d%%", percent), "  ");
}

}  // namespace

std::string FormatProgress(std::string_view title, const ProgressCounts& counts, int64_t elapsed_ns,
                           size_t columns) {
  const std::string numbers =
      absl::StrCat(counts.items, " items  ", PerSecond(counts.items, elapsed_ns), "/s  ",
                   counts.errors, counts.errors == 1 ? " error" : " errors");
  std::string line = absl::StrCat(ToAbsl(title), "  ");
  if (counts.bytes_total.has_value()) {
    const uint64_t total = std::max<uint64_t>(*counts.bytes_total, 1);
    // In floating point: the product of two sizes of files may not fit 64 bits.
    const double share = static_cast<double>(counts.bytes_done) / static_cast<double>(total);
    const uint64_t percent = static_cast<uint64_t>(100 * std::min(share, 1.0));
    constexpr size_t kBarMax = 40;
    constexpr size_t kBarFrame = 9;  // "[] 100%  "
    const size_t used = DisplayWidth(line) + numbers.size() + kBarFrame;
    if (used + 5 <= columns) line += Bar(percent, std::min(kBarMax, columns - used));
  }
  line += numbers;
  return DisplayWidth(line) <= columns ? line : numbers.substr(0, columns);
}

std::string FormatPace(uint64_t items, uint64_t bytes, int64_t elapsed_ns) {
  const double seconds = static_cast<double>(elapsed_ns) / 1e9;
  std::string text = absl::StrFormat("%.2f s", seconds);
  if (elapsed_ns < 1'000'000) return text;
  const double mib = static_cast<double>(bytes) / static_cast<double>(kMiB);
  absl::StrAppend(&text, ", ", PerSecond(items, elapsed_ns), " items/s, ",
                  absl::StrFormat("%.1f MiB/s", mib / seconds));
  return text;
}

Progress::Progress(Console& console, std::string title, bool enabled)
    : console_(console),
      title_(OneLine(title)),
      drawing_(enabled && console.err_is_terminal),
      started_ns_(console.clock.NowMonotonicNs()),
      next_draw_ns_(started_ns_ + kDrawIntervalNs) {}

void Progress::Update(const ProgressCounts& counts) {
  if (!drawing_) return;
  const int64_t now_ns = console_.clock.NowMonotonicNs();
  if (now_ns < next_draw_ns_) return;
  next_draw_ns_ = now_ns + kDrawIntervalNs;
  console_.err.Write("\r\x1b[K");
  // One column less than there are: the cursor must not wrap.
  console_.err.Write(FormatProgress(title_, counts, now_ns - started_ns_,
                                    console_.columns > 1 ? console_.columns - 1 : 1));
  console_.err.Flush();
  shown_ = true;
}

void Progress::Clear() {
  if (!std::exchange(shown_, false)) return;
  console_.err.Write("\r\x1b[K");
  console_.err.Flush();
}

}  // namespace kvd::cli
