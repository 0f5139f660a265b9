// A clock that stands still until a test moves it.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/base/clock.h"

namespace kvd::test {

// Starts at monotonic 1 s and Unix time 1,700,000,000 s. Any thread may call any method.
class FakeClock : public Clock {
 public:
  int64_t NowMonotonicNs() const override { return monotonic_ns_.load(); }
  int64_t NowUnixUs() const override { return unix_us_.load(); }

  // Moves both times on by `delta_ns` (>= 0).
  void AdvanceNs(int64_t delta_ns) {
    const int64_t before_us = monotonic_ns_.load() / 1000;
    monotonic_ns_ += delta_ns;
    unix_us_ += monotonic_ns_.load() / 1000 - before_us;
  }
  void AdvanceMs(int64_t delta_ms) { AdvanceNs(delta_ms * 1'000'000); }

  // Steps the time of day alone, as an administrator or NTP may; backwards too.
  void SetUnixUs(int64_t unix_us) { unix_us_ = unix_us; }

 private:
  std::atomic<int64_t> monotonic_ns_{1'000'000'000};
  std::atomic<int64_t> unix_us_{1'700'000'000'000'000};
};

}  // namespace kvd::test
