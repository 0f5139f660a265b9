// The calculation against stores that are filled with what it was asked for.
#include "server/store/capacity.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/random.h"
#include "common/base/units.h"
#include "server/store/region.h"
#include "server/store/shard.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

struct Filled {
  uint64_t stored = 0;  // before the first refusal, or all
  ShardStats stats;
  ReadCost reads;
};

std::string KeyOf(uint64_t number, uint64_t key_bytes) {
  std::string key(key_bytes, 'k');
  const uint64_t mixed = Mix64(number);
  key.replace(0, sizeof(mixed), reinterpret_cast<const char*>(&mixed), sizeof(mixed));
  return key;
}

const ItemKind& AnyKind(const std::vector<ItemKind>& kinds, Random& random) {
  double shares = 0;
  for (const ItemKind& kind : kinds) shares += kind.share;
  double at = random.NextDouble() * shares;
  for (const ItemKind& kind : kinds) {
    at -= kind.share;
    if (at < 0) return kind;
  }
  return kinds.back();
}

// As a poller does: a batch of requests, then deferred work.
Filled Fill(uint64_t memory_bytes, const CapacityNeeds& needs, uint64_t seed) {
  auto region = *Region::Create({.memory_bytes = memory_bytes,
                                 .hugepages = HugepagePolicy::kOff,
                                 .bucket_bytes = needs.bucket_bytes,
                                 .progress = {}});
  auto shard = *Shard::Create(*region, 0, RealClock::Get());
  Random random(seed);
  const uint64_t hash_seed = region->geometry().hash_seed();
  Filled filled;
  const std::string value(needs.kinds.size() == 1 ? needs.kinds[0].value_bytes : kMiB, 'v');
  for (; filled.stored < needs.items; ++filled.stored) {
    const ItemKind& kind = AnyKind(needs.kinds, random);
    const std::string key = KeyOf(filled.stored, kind.key_bytes);
    const StoreResult result = shard->Put(key, HashKey(key, hash_seed),
                                          std::string_view(value).substr(0, kind.value_bytes));
    if (result.status != StoreStatus::kOk) break;
    if (filled.stored % 32 == 31) {
      shard->RefreshClock();
      while (shard->Work()) {
      }
    }
  }
  while (shard->Work()) {
  }
  filled.stats = shard->stats();
  filled.reads = shard->MeasureReads();
  return filled;
}

struct Case {
  const char* name;
  uint64_t items;
  std::vector<ItemKind> kinds;
  uint32_t bucket_bytes = kBucketBytesDefault;
};

const Case kCases[] = {
    {"64 B", 300'000, {{8, 64}}},
    {"64 B, early in a doubling", 560'000, {{8, 64}}},
    {"64 B, in its middle", 780'000, {{8, 64}}},
    {"64 B in buckets of 4 KiB", 300'000, {{8, 64}}, 4096},
    {"1 byte", 400'000, {{8, 1}}},
    {"200 B with keys of 40", 150'000, {{40, 200}}},
    {"300 B", 100'000, {{8, 300}}},
    {"1,000 B", 60'000, {{8, 1000}}},
    {"4 KiB", 15'000, {{16, 4096}}},
    {"30,000 B", 2'000, {{8, 30'000}}},
    {"100 KB", 600, {{8, 100'000}}},
    {"mix",
     60'000,
     {{8, 64, false, 70}, {8, 1024, false, 25}, {8, 4096, false, 4}, {8, 50'000, false, 1}}},
};

TEST_CASE("Capacity: what was planned for is stored without a refusal, and little memory is left") {
  const uint64_t seed = test::Seed();
  for (const Case& each : kCases) {
    const CapacityNeeds needs{
        .items = each.items, .kinds = each.kinds, .bucket_bytes = each.bucket_bytes};
    const Capacity plan = PlanCapacity(needs);
    const Filled filled = Fill(plan.memory_bytes, needs, seed);
    const uint64_t used = filled.stats.index_bytes + filled.stats.heap_bytes;
    INFO(each.name << ": planned " << FormatBytes(plan.memory_bytes) << ", index "
                   << FormatBytes(plan.index_bytes) << ", heap " << FormatBytes(plan.heap_bytes)
                   << "; stored " << filled.stored << " with an index of "
                   << FormatBytes(filled.stats.index_bytes) << " and a heap of "
                   << FormatBytes(filled.stats.heap_bytes));
    CHECK(filled.stored == each.items);
    CHECK(filled.stats.no_space == 0);
    CHECK(static_cast<double>(plan.memory_bytes) <= static_cast<double>(used) * 1.12);
  }
}

// Of small items a store takes more than this, with chains and more READs; of long ones not.
TEST_CASE("Capacity: long items do not fit into 85 % of the memory") {
  const uint64_t seed = test::Seed();
  for (const Case& each : kCases) {
    const CapacityNeeds needs{
        .items = each.items, .kinds = each.kinds, .bucket_bytes = each.bucket_bytes};
    const Capacity plan = PlanCapacity(needs);
    if (plan.local_share > 0) continue;
    INFO(each.name);
    CHECK(Fill(plan.memory_bytes * 85 / 100, needs, seed).stored < each.items);
  }
}

TEST_CASE("Capacity: index, heap, items in their buckets and READs are those of the filled store") {
  const uint64_t seed = test::Seed();
  for (const Case& each : kCases) {
    const CapacityNeeds needs{
        .items = each.items, .kinds = each.kinds, .bucket_bytes = each.bucket_bytes};
    const Capacity plan = PlanCapacity(needs);
    const Filled filled = Fill(plan.memory_bytes * 3 / 2, needs, seed);
    REQUIRE(filled.stored == each.items);
    const auto items = static_cast<double>(each.items);
    const double index = static_cast<double>(plan.index_bytes);
    const double used = static_cast<double>(filled.stats.index_bytes + filled.stats.heap_bytes);
    const double reads = static_cast<double>(filled.reads.reads) / items;
    const double local = static_cast<double>(filled.stats.local_items) / items;
    INFO(each.name);
    CHECK(std::abs(index - static_cast<double>(filled.stats.index_bytes)) <=
          0.02 * index + kSegmentBytes);
    CHECK(index + static_cast<double>(plan.heap_bytes) == Approx(used).epsilon(0.06).margin(kMiB));
    CHECK(plan.reads_per_get == Approx(reads).epsilon(0.02));
    CHECK(plan.local_share == Approx(local).margin(0.02));
  }
}

TEST_CASE("Capacity: never below what kvd and its longest value need") {
  CHECK(PlanCapacity({.items = 0, .kinds = {{8, 64}}}).memory_bytes == 4 * kMiB);
  CHECK(PlanCapacity({.items = 1, .kinds = {{8, 16 * kMiB}}}).memory_bytes >= 64 * kMiB);
  CHECK(PlanCapacity({.items = 1, .kinds = {{8, 64}}, .pollers = 8}).memory_bytes >=
        Region::MinimumBytes(8));
  CHECK(PlanCapacity({.items = 1'000'000'000'000, .kinds = {{8, 64}}}).memory_bytes > kTiB);
  // An expiry is eight bytes, and the item has the long form.
  CHECK(PlanCapacity({.items = 1'000'000, .kinds = {{8, 64, true}}}).memory_bytes >
        PlanCapacity({.items = 1'000'000, .kinds = {{8, 64}}}).memory_bytes);
}

}  // namespace
}  // namespace kvd
