#include "client/bench/kvbench/pacer.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "common/base/clock.h"
#include "common/base/cpu_relax.h"

namespace kvd::bench {

void WaitUntil(int64_t monotonic_ns, const std::atomic<bool>& stop) {
  // A sleep ends late by up to the kernel's timer slack, 50 us, and a wake-up's own time.
  constexpr int64_t kSpinNs = 100'000;
  constexpr int64_t kSleepMaxNs = 20'000'000;
  while (!stop.load(std::memory_order_relaxed)) {
    const int64_t left_ns = monotonic_ns - RealClock::Get().NowMonotonicNs();
    if (left_ns <= 0) return;
    if (left_ns > kSpinNs) {
      std::this_thread::sleep_for(
          std::chrono::nanoseconds(std::min(left_ns - kSpinNs, kSleepMaxNs)));
    } else {
      CpuRelax();
    }
  }
}

}  // namespace kvd::bench
