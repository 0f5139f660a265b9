// Time as the rest of kvd sees it: an interface, so that tests move it by hand.
#pragma once

#include <cstdint>

namespace kvd {

// Thread-safe; no call blocks or fails.
class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds since an arbitrary start; never goes back. For timeouts and durations.
  virtual int64_t NowMonotonicNs() const = 0;

  // Microseconds since 1970 in UTC; may step either way. For expiry times that peers compare.
  virtual int64_t NowUnixUs() const = 0;
};

// The machine's clocks (CLOCK_MONOTONIC, CLOCK_REALTIME).
class RealClock : public Clock {
 public:
  // The one instance; lives until the process ends.
  static const RealClock& Get();

  int64_t NowMonotonicNs() const override;
  int64_t NowUnixUs() const override;
};

}  // namespace kvd
