#include "client/bench/kvbench/acknowledged_counter.h"

#include <memory>
#include <thread>
#include <vector>

#include "tests/support/test.h"

namespace kvd::bench {
namespace {

TEST_CASE("AcknowledgedCounter: the limit waits for the first that is not there") {
  const auto counter = std::make_unique<AcknowledgedCounter>();
  counter->Begin(10);
  CHECK(counter->Limit() == 10);
  const uint64_t first = counter->Take();
  const uint64_t second = counter->Take();
  const uint64_t third = counter->Take();
  CHECK(first == 10);
  CHECK(third == 12);
  counter->Acknowledge(third);
  counter->Acknowledge(second);
  CHECK(counter->Limit() == 10);
  counter->Acknowledge(first);
  CHECK(counter->Limit() == 13);
}

TEST_CASE("AcknowledgedCounter: more numbers than it remembers at once, from several threads") {
  const auto counter = std::make_unique<AcknowledgedCounter>();
  counter->Begin(0);
  constexpr uint64_t kEach = AcknowledgedCounter::kOutstandingMax;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&counter] {
      for (uint64_t n = 0; n < kEach; ++n) counter->Acknowledge(counter->Take());
    });
  }
  for (std::thread& thread : threads) thread.join();
  counter->Acknowledge(
      counter->Take());  // whoever came while another moved the limit, is found now
  CHECK(counter->Limit() == 4 * kEach + 1);
}

}  // namespace
}  // namespace kvd::bench
