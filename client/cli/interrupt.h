// Ctrl-C as something a long command can end on, instead of dying of.
#pragma once

#include <chrono>
#include <csignal>

namespace kvd::cli {

// While it lives, the first SIGINT, and SIGTERM where asked for, is only noted, and ends a blocking
// read; the next one has its usual effect. May be nested. Main thread only.
class InterruptGuard {
 public:
  enum class Signals { kInterrupt, kInterruptAndTerminate };

  explicit InterruptGuard(Signals signals = Signals::kInterruptAndTerminate);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // A signal came since the last guard was made.
  static bool Seen();

 private:
  const Signals signals_;
  struct sigaction previous_interrupt_ = {};
  struct sigaction previous_terminate_ = {};
};

// Sleeps for so long; false: what a guard notices ended it earlier, within 50 ms.
bool SleepUnlessInterrupted(std::chrono::nanoseconds time);

}  // namespace kvd::cli
