#include "common/base/clock.h"

#include <ctime>

namespace kvd {

const RealClock& RealClock::Get() {
  static const RealClock clock;
  return clock;
}

int64_t RealClock::NowMonotonicNs() const {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);  // fails only for a clock that does not exist
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t RealClock::NowUnixUs() const {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

}  // namespace kvd
