// Time that only moves when it is told to, and randomness that a seed decides, for a whole program:
// its link replaces clock_gettime, getrandom and what sleeps.
#pragma once

#include <cstdint>
#include <functional>

namespace kvd::test {

// One thread turns it on and off; while it is on, the monotonic clock and that of Unix time are
// read from here by all. A program that links this without Begin has the machine's clocks.
class VirtualTime {
 public:
  // From now on. `sleep_until` is called by whoever would sleep; it returns when that time has
  // come.
  static void Begin(uint64_t seed, std::function<void(int64_t until_ns)> sleep_until);
  static void End();

  static int64_t now_ns();
  static void Advance(int64_t ns);
  static void AdvanceTo(int64_t ns);  // not back
  // The clock of Unix time alone, forward or back.
  static void JumpUnix(int64_t ns);
};

}  // namespace kvd::test
