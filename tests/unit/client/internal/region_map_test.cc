// What a client remembers of where buckets lie goes when it is known to be out of date.
#include "client/internal/region_map.h"

#include "tests/support/test.h"
#include "tests/unit/client/internal/machine_driver.h"
#include "tests/unit/client/internal/test_region.h"

namespace kvd::test {
namespace {

constexpr uint64_t kIncarnation = 0x1234567890abcdef;

TEST_CASE("RegionMap: fewer buckets than were known make it forget the segments beyond them") {
  const TestRegion region(kIncarnation, 2);
  const uint32_t per_segment = region.geometry().buckets_per_segment();
  RegionMap map(region.geometry(), 1 << 20);
  const auto place = [&](uint32_t shard, uint32_t number) {
    return ToBytes(map.BucketOffset(shard, BucketIndex{number * per_segment})) / kSegmentBytes;
  };
  for (uint32_t shard : {0u, 1u}) map.LearnBucketCount(shard, 2 * per_segment + 1);
  for (uint32_t entry = 0; entry < 6; ++entry) map.LearnSegment(entry, 1 + entry);
  REQUIRE(place(0, 2) == 5);

  map.LearnBucketCount(0, 2 * per_segment + 1);
  CHECK(place(0, 2) == 5);
  map.LearnBucketCount(0, 2 * per_segment);
  CHECK(place(0, 2) == 0);
  CHECK(place(0, 1) == 3);
  CHECK(place(1, 2) == 6);  // another shard's
  map.LearnBucketCount(0, 3);
  CHECK(place(0, 1) == 0);
  CHECK(place(0, 0) == 1);
  map.LearnBucketCount(1, per_segment);
  CHECK(place(1, 1) == 0);
  CHECK(place(1, 2) == 0);
  CHECK(place(1, 0) == 2);
  // And growing again brings nothing back.
  map.LearnBucketCount(0, 2 * per_segment);
  CHECK(place(0, 1) == 0);
}

TEST_CASE("RegionMap: a directory entry that is gone is forgotten by whoever reads it") {
  TestRegion region(kIncarnation);
  const uint32_t per_segment = region.geometry().buckets_per_segment();
  while (region.bucket_count(0) < per_segment + 10) region.Split(0);
  MachineDriver driver(region);
  const BucketIndex gone{per_segment + 3};
  REQUIRE(driver.Get(region.KeyIn(0, gone, per_segment + 10, "key")) == GetMachine::Need::kAbsent);
  REQUIRE(ToBytes(driver.map().BucketOffset(0, gone)) != 0);
  while (region.bucket_count(0) > per_segment) region.Merge(0);
  region.GiveBackSegment(0);
  // Read for the sake of another segment.
  driver.map().ForgetSegment(0);
  REQUIRE(driver.Get(region.KeyIn(0, BucketIndex{3}, per_segment + 10, "key")) ==
          GetMachine::Need::kAbsent);
  CHECK(ToBytes(driver.map().BucketOffset(0, gone)) == 0);
}

}  // namespace
}  // namespace kvd::test
