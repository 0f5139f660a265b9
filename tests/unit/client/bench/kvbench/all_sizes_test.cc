// The plan of --all: sizes and keys, and that what lies in the store together has room there.
#include "client/bench/kvbench/all_sizes.h"

#include <algorithm>
#include <map>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

SizesPlan Plan(uint64_t keys, uint64_t memory_bytes) {
  Workload work;
  work.keys = keys;
  auto plan = PlanAllSizes(work, memory_bytes);
  KVD_REQUIRE_OK(plan);
  return *std::move(plan);
}

// Values of each key after all runs, and the most that there were after any of them.
uint64_t ValueBytesMost(const SizesPlan& plan) {
  std::map<uint64_t, uint64_t> sizes;
  uint64_t most = 0;
  for (const Workload& run : plan.runs) {
    uint64_t sum = 0;
    for (uint64_t key = 0; key < run.keys; ++key) sizes[key] = run.value_sizes.max();
    for (const auto& [unused, size] : sizes) sum += size;
    most = std::max(most, sum);
  }
  return most;
}

TEST_CASE("All sizes: from 2 bytes to 1 MiB, 32 MiB of each where memory is no question") {
  const SizesPlan plan = Plan(100'000, 0);
  REQUIRE(plan.runs.size() == 20);
  CHECK(plan.runs.front().value_sizes.max() == 2);
  CHECK(plan.runs.front().keys == 100'000);
  CHECK(plan.runs.back().value_sizes.max() == kMiB);
  CHECK(plan.runs.back().keys == 32);
  CHECK(plan.value_bytes == 32 * kMiB);
  CHECK(plan.memory_bytes > ValueBytesMost(plan));
  CHECK(Plan(20, 0).runs.back().keys == 20);
}

TEST_CASE("All sizes: fewer keys where memory is short, and what all leave there fits") {
  uint64_t keys_before = 0;
  for (const uint64_t memory : {24 * kMiB, 64 * kMiB, 128 * kMiB, 1024 * kMiB}) {
    const SizesPlan plan = Plan(100'000, memory);
    CHECK(plan.memory_bytes <= memory);
    CHECK(ValueBytesMost(plan) < memory);
    uint64_t keys = 0;
    for (const Workload& run : plan.runs) {
      keys += run.keys;
      CHECK(run.keys >= 16);
    }
    CHECK(keys > keys_before);
    keys_before = keys;
  }
}

TEST_CASE("All sizes: refused where not even the fewest keys have room, with what it takes") {
  Workload work;
  work.keys = 100'000;
  const auto plan = PlanAllSizes(work, 16 * kMiB);
  KVD_REQUIRE_CODE(plan, kResourceExhausted);
  CHECK(kvd::test::MessageOf(plan) ==
        "needs about 21.6 MiB and this kvd has 16 MiB; start kvd with a larger --memory");
}

}  // namespace
}  // namespace kvd::bench
