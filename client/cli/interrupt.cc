#include "client/cli/interrupt.h"

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

}  // namespace kvd::cli
