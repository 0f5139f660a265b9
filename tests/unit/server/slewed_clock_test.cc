#include "server/slewed_clock.h"

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/support/fake_clock.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kHourUs = 3600 * kSecondUs;

// Lets `seconds` pass in steps of 50 ms, as a kvd would look at the clock.
void Pass(FakeClock& machine, const SlewedClock& clock, int64_t seconds) {
  for (int64_t i = 0; i < seconds * 20; ++i) {
    machine.AdvanceMs(50);
    clock.NowUnixUs();
  }
}

}  // namespace

TEST_CASE("SlewedClock: shows the machine's time for as long as that is steady") {
  FakeClock machine;
  const SlewedClock clock(machine);
  CHECK(clock.NowUnixUs() == machine.NowUnixUs());
  CHECK(clock.NowMonotonicNs() == machine.NowMonotonicNs());
  for (const int64_t ms : {1, 99, 100, 101, 5'000, 86'400'000}) {
    machine.AdvanceMs(ms);
    CHECK(clock.NowUnixUs() == machine.NowUnixUs());
  }
}

TEST_CASE("SlewedClock: a jump either way moves it by a hundredth of the time that passes") {
  for (const int64_t jump_us :
       {kHourUs, -kHourUs, 100 * 365 * 24 * kHourUs, -40 * 365 * 24 * kHourUs}) {
    FakeClock machine;
    const SlewedClock clock(machine);
    const int64_t start_us = clock.NowUnixUs();
    machine.SetUnixUs(machine.NowUnixUs() + jump_us);
    CHECK(clock.NowUnixUs() == start_us);
    Pass(machine, clock, 1000);
    const int64_t passed_us = clock.NowUnixUs() - start_us;
    CHECK(std::abs(passed_us - 1000 * kSecondUs) <= 10 * kSecondUs);
    CHECK(std::abs(passed_us - 1000 * kSecondUs) >= 9 * kSecondUs);
    CHECK((passed_us > 1000 * kSecondUs) == (jump_us > 0));
  }
}

TEST_CASE("SlewedClock: comes back to the wall clock, and does not go beyond it") {
  for (const int64_t jump_us : {kSecondUs, -kSecondUs}) {
    FakeClock machine;
    const SlewedClock clock(machine);
    machine.SetUnixUs(machine.NowUnixUs() + jump_us);
    Pass(machine, clock, 99);
    CHECK(clock.NowUnixUs() != machine.NowUnixUs());
    Pass(machine, clock, 3);
    CHECK(clock.NowUnixUs() == machine.NowUnixUs());
    // Nor if nobody has asked for long.
    machine.AdvanceMs(86'400'000);
    CHECK(clock.NowUnixUs() == machine.NowUnixUs());
  }
}

TEST_CASE("SlewedClock: a jump while nobody asks counts from when it is noticed") {
  FakeClock machine;
  const SlewedClock clock(machine);
  const int64_t start_us = clock.NowUnixUs();
  machine.AdvanceMs(3'600'000);
  machine.SetUnixUs(machine.NowUnixUs() + 24 * kHourUs);
  CHECK(clock.NowUnixUs() == start_us + kHourUs);
}

TEST_CASE("SlewedClock: starts at zero where the wall clock is before 1970, and never goes back") {
  FakeClock machine;
  machine.SetUnixUs(-5);
  const SlewedClock clock(machine);
  CHECK(clock.NowUnixUs() == 0);
  machine.SetUnixUs(INT64_MAX);
  Pass(machine, clock, 1);
  const int64_t ahead = clock.NowUnixUs();
  machine.SetUnixUs(-5);
  Pass(machine, clock, 1);
  CHECK(clock.NowUnixUs() > ahead);
}

TEST_CASE("SlewedClock: many threads see one time that grows") {
  FakeClock machine;
  const SlewedClock clock(machine);
  std::atomic<bool> wrong{false};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      int64_t last_us = 0;
      while (!stop.load()) {
        const int64_t now_us = clock.NowUnixUs();
        if (now_us < last_us) wrong = true;
        last_us = now_us;
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    if (i % 1000 == 0)
      machine.SetUnixUs(machine.NowUnixUs() + (i % 20 == 0 ? kHourUs : -kHourUs));
    machine.AdvanceMs(30);
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK_FALSE(wrong.load());
}

}  // namespace kvd::test
