// Ctrl-C as something a long command can end on, instead of dying of.
#pragma once

#include <csignal>

namespace kvd::cli {

// While it lives, the first SIGINT or SIGTERM is only noted, and ends a blocking read; the next one
// has its usual effect. One at a time; may be made again. Main thread only.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // A signal came since the last guard was made.
  static bool Seen();

 private:
  struct sigaction previous_interrupt_ = {};
  struct sigaction previous_terminate_ = {};
};

}  // namespace kvd::cli
