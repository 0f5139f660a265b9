#include "server/kvd_memory_progress.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/units.h"

namespace kvd {
namespace {

constexpr uint64_t kMuchBytes = kGiB;  // comes in about a second
constexpr int64_t kLogEveryNs = 3'000'000'000;
constexpr uint64_t kStatusEveryPercent = 5;

}  // namespace

MemoryProgress::MemoryProgress(uint64_t memory_bytes, const Clock& clock, Line log, Line status)
    : clock_(clock),
      log_(std::move(log)),
      status_(std::move(status)),
      logged_ns_(clock.NowMonotonicNs()) {
  if (memory_bytes >= kMuchBytes) {
    log_(absl::StrCat("getting ", FormatBytes(memory_bytes), " of memory ..."));
  }
}

void MemoryProgress::Update(uint64_t done_bytes, uint64_t total_bytes) {
  const uint64_t percent = total_bytes == 0
                               ? 100
                               : static_cast<uint64_t>(static_cast<double>(done_bytes) /
                                                       static_cast<double>(total_bytes) * 100);
  if (percent < told_percent_) told_percent_ = percent;
  const std::string line =
      absl::StrCat("getting memory: ", percent, " % of ", FormatBytes(total_bytes));
  if (percent >= told_percent_ + kStatusEveryPercent || percent == 100) {
    told_percent_ = percent;
    status_(line);
  }
  const int64_t now_ns = clock_.NowMonotonicNs();
  if (percent == 100 || now_ns - logged_ns_ < kLogEveryNs) return;
  logged_ns_ = now_ns;
  log_(line);
}

}  // namespace kvd
