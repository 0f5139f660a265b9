#include "client/cli/interrupt.h"

#include <algorithm>
#include <thread>

namespace kvd::cli {
namespace {

volatile std::sig_atomic_t g_seen = 0;

void Notice(int) { g_seen = 1; }

}  // namespace

InterruptGuard::InterruptGuard(Signals signals) : signals_(signals) {
  g_seen = 0;
  struct sigaction action = {};
  action.sa_handler = Notice;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // and no SA_RESTART
  sigaction(SIGINT, &action, &previous_interrupt_);
  if (signals_ == Signals::kInterruptAndTerminate) {
    sigaction(SIGTERM, &action, &previous_terminate_);
  }
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &previous_interrupt_, nullptr);
  if (signals_ == Signals::kInterruptAndTerminate) {
    sigaction(SIGTERM, &previous_terminate_, nullptr);
  }
}

bool InterruptGuard::Seen() { return g_seen != 0; }

bool SleepUnlessInterrupted(std::chrono::nanoseconds time) {
  using Clock = std::chrono::steady_clock;
  // The signal may have come between the look at it and the sleep, which then is not cut short.
  constexpr std::chrono::nanoseconds kNapMax = std::chrono::milliseconds(50);
  const Clock::time_point end = Clock::now() + time;
  while (!InterruptGuard::Seen()) {
    const std::chrono::nanoseconds left = end - Clock::now();
    if (left.count() <= 0) return true;
    std::this_thread::sleep_for(std::min(left, kNapMax));
  }
  return false;
}

}  // namespace kvd::cli
