#include "server/slewed_clock.h"

#include <algorithm>

namespace kvd {
namespace {

// How often the wall clock is looked at, if anybody asks for the time at all.
constexpr int64_t kRebaseUs = 100'000;

}  // namespace

SlewedClock::SlewedClock(const Clock& machine) : machine_(machine) {
  monotonic_us_.store(machine.NowMonotonicNs() / 1000, std::memory_order_relaxed);
  unix_us_.store(std::max<int64_t>(machine.NowUnixUs(), 0), std::memory_order_relaxed);
}

int64_t SlewedClock::UnixUsAt(const Base& base, int64_t monotonic_us) {
  const int64_t passed_us = std::max<int64_t>(monotonic_us - base.monotonic_us, 0);
  const int64_t slew_us = passed_us * kSlewPercent / 100;
  return base.unix_us + passed_us + std::clamp(base.behind_us, -slew_us, slew_us);
}

SlewedClock::Base SlewedClock::ReadBase() const {
  for (;;) {
    const uint64_t before = sequence_.load(std::memory_order_acquire);
    const Base base{monotonic_us_.load(std::memory_order_acquire),
                    unix_us_.load(std::memory_order_acquire),
                    behind_us_.load(std::memory_order_acquire)};
    if (before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before) return base;
  }
}

int64_t SlewedClock::NowUnixUs() const {
  const int64_t monotonic_us = machine_.NowMonotonicNs() / 1000;
  const Base base = ReadBase();
  if (monotonic_us - base.monotonic_us >= kRebaseUs) Rebase(monotonic_us);
  return UnixUsAt(base, monotonic_us);
}

// The new line begins where the old one has come to, so the time neither jumps nor goes back.
void SlewedClock::Rebase(int64_t monotonic_us) const {
  const std::unique_lock lock(rebasing_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  const Base old = ReadBase();
  if (monotonic_us <= old.monotonic_us) return;
  const int64_t unix_us = UnixUsAt(old, monotonic_us);
  const int64_t wall_us = std::max<int64_t>(machine_.NowUnixUs(), 0);
  const uint64_t sequence = sequence_.load(std::memory_order_relaxed);
  sequence_.store(sequence + 1, std::memory_order_relaxed);
  monotonic_us_.store(monotonic_us, std::memory_order_release);
  unix_us_.store(unix_us, std::memory_order_release);
  behind_us_.store(wall_us - unix_us, std::memory_order_release);
  sequence_.store(sequence + 2, std::memory_order_release);
}

}  // namespace kvd
