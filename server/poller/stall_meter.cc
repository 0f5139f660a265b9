#include "server/poller/stall_meter.h"

#include <time.h>

namespace kvd {

int64_t StallMeter::Look(int64_t now_ns) {
  const int64_t had_ns = processor_ns_();
  const int64_t without_ns = (now_ns - looked_ns_) - (had_ns - processor_had_ns_);
  const bool is_first = !has_looked_;
  has_looked_ = true;
  looked_ns_ = now_ns;
  processor_had_ns_ = had_ns;
  due_ns_ = now_ns + kBetweenLooksNs;
  return is_first || without_ns < kStallNs ? 0 : without_ns;
}

int64_t StallMeter::Slept(int64_t from_ns, int64_t to_ns, int64_t until_ns) {
  looked_ns_ += to_ns - from_ns;
  // poll() may end later by a thousandth of what it was to take, and by five where the process is
  // nice (select_estimate_accuracy in Linux): that is no stall.
  constexpr int64_t kSlackPart = 200;
  if (to_ns < until_ns) return 0;
  const int64_t late_ns = to_ns - until_ns - (until_ns - from_ns) / kSlackPart;
  return late_ns < kStallNs ? 0 : late_ns;
}

int64_t ThreadProcessorNs() {
  timespec time{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace kvd
