// The real clock runs in the promised units; the fake one moves only when told.
#include "common/base/clock.h"

#include <chrono>
#include <cstdint>

#include "tests/support/fake_clock.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

TEST_CASE("RealClock: agrees with the standard library's clocks") {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  using std::chrono::nanoseconds;
  const Clock& clock = RealClock::Get();
  const auto steady = [] {
    return duration_cast<nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const auto system = [] {
    return duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  };
  const int64_t steady_before = steady();
  const int64_t monotonic_ns = clock.NowMonotonicNs();
  CHECK(steady_before <= monotonic_ns);
  CHECK(monotonic_ns <= steady());
  const int64_t difference_us = clock.NowUnixUs() - system();
  CHECK(difference_us > -60'000'000);  // someone may set the time meanwhile, but not by this much
  CHECK(difference_us < 60'000'000);
}

TEST_CASE("FakeClock: both times move together, by the given amount") {
  test::FakeClock clock;
  const int64_t monotonic_ns = clock.NowMonotonicNs();
  const int64_t unix_us = clock.NowUnixUs();
  CHECK(clock.NowMonotonicNs() == monotonic_ns);
  clock.AdvanceMs(5);
  CHECK(clock.NowMonotonicNs() == monotonic_ns + 5'000'000);
  CHECK(clock.NowUnixUs() == unix_us + 5'000);
  for (int i = 0; i < 1000; ++i) clock.AdvanceNs(1);  // parts of a microsecond add up
  CHECK(clock.NowUnixUs() == unix_us + 5'001);
  clock.SetUnixUs(7);
  CHECK(clock.NowUnixUs() == 7);
  CHECK(clock.NowMonotonicNs() == monotonic_ns + 5'001'000);
}

}  // namespace
}  // namespace kvd
