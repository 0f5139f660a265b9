#include "client/cli/interrupt.h"

#include <csignal>

#include "tests/support/test.h"

namespace kvd::cli {
namespace {

bool HasDefaultAction(int number) {
  struct sigaction action = {};
  REQUIRE(sigaction(number, nullptr, &action) == 0);
  return action.sa_handler == SIG_DFL;
}

// Catch2 has handlers of its own while a test runs.
class DefaultActions {
 public:
  DefaultActions() {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, &interrupt_);
    sigaction(SIGTERM, &action, &terminate_);
  }
  ~DefaultActions() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction interrupt_ = {};
  struct sigaction terminate_ = {};
};

TEST_CASE("InterruptGuard: notes the first signal, and leaves the next its usual effect") {
  const DefaultActions actions;
  for (const int number : {SIGINT, SIGTERM}) {
    const InterruptGuard guard;
    CHECK_FALSE(InterruptGuard::Seen());
    CHECK_FALSE(HasDefaultAction(number));
    std::raise(number);
    CHECK(InterruptGuard::Seen());
    CHECK(HasDefaultAction(number));
  }
  CHECK(HasDefaultAction(SIGINT));
  CHECK(HasDefaultAction(SIGTERM));
}

TEST_CASE("InterruptGuard: may leave SIGTERM alone, and may be nested") {
  const DefaultActions actions;
  const InterruptGuard outer(InterruptGuard::Signals::kInterrupt);
  CHECK(HasDefaultAction(SIGTERM));
  {
    const InterruptGuard inner;
    CHECK_FALSE(HasDefaultAction(SIGTERM));
    std::raise(SIGINT);
  }
  CHECK(HasDefaultAction(SIGTERM));
  CHECK_FALSE(HasDefaultAction(SIGINT));
}

}  // namespace
}  // namespace kvd::cli
