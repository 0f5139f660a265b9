#include "client/bench/kvbench/pacer.h"

#include <cmath>

#include "tests/support/test.h"

namespace kvd::bench {
namespace {

TEST_CASE("Pacer: evenly, each client at its own place in the interval") {
  Pacer first(1000, Arrivals::kConstant, 5'000'000, 0, 1);
  Pacer second(1000, Arrivals::kConstant, 5'000'000, 0.25, 1);
  for (int i = 0; i < 10; ++i) {
    CHECK(first.due_ns() == 5'000'000 + i * 1'000'000);
    CHECK(second.due_ns() == 5'250'000 + i * 1'000'000);
    first.Advance();
    second.Advance();
  }
}

TEST_CASE("Pacer: at random, with the mean and the deviation of a Poisson process") {
  Pacer pacer(1000, Arrivals::kPoisson, 0, 0, 7);
  constexpr int kArrivals = 200'000;
  double squares = 0;
  int64_t last_ns = 0;
  for (int i = 0; i < kArrivals; ++i) {
    pacer.Advance();
    const auto gap = static_cast<double>(pacer.due_ns() - last_ns);
    CHECK(gap >= 0);
    squares += (gap - 1e6) * (gap - 1e6);
    last_ns = pacer.due_ns();
  }
  CHECK(static_cast<double>(last_ns) / kArrivals == Approx(1e6).epsilon(0.01));
  CHECK(std::sqrt(squares / kArrivals) == Approx(1e6).epsilon(0.02));
}

TEST_CASE("Pacer: no rate is no schedule") {
  CHECK_FALSE(Pacer(0, Arrivals::kConstant, 0, 0, 1).open());
  CHECK(Pacer(1, Arrivals::kConstant, 0, 0, 1).open());
}

TEST_CASE("Pacer: a wait ends at once when it is told to, or when it is late") {
  const std::atomic<bool> stop{true};
  WaitUntil(INT64_MAX, stop);
  const std::atomic<bool> on{false};
  WaitUntil(0, on);
}

}  // namespace
}  // namespace kvd::bench
