#include "server/store/local_space.h"

#include <vector>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

constexpr RegionOffset kBucket{1 << 20};
constexpr RegionOffset kFirst = kBucket + kBucketHeaderBytes;

TEST_CASE("LocalSpace: fills from the front to the last byte") {
  LocalSpace space(kBucket, 1024);
  for (uint32_t i = 0; i < 9; ++i) REQUIRE(space.Take(96) == kFirst + uint64_t{96} * i);
  REQUIRE_FALSE(space.Take(96).has_value());
  REQUIRE(space.Take(16) == kFirst + 864);
  REQUIRE_FALSE(space.Take(8).has_value());
  REQUIRE(space.used_bytes() == 880);
}

TEST_CASE("LocalSpace: takes the first hole that is long enough, also across words of its bitmap") {
  LocalSpace space(kBucket, 1024);
  space.MarkUsed(kFirst + 16, 8);
  space.MarkUsed(kFirst + 480, 72);  // units 60..68
  REQUIRE(space.Overlaps(kFirst + 8, 16));
  REQUIRE_FALSE(space.Overlaps(kFirst, 16));
  REQUIRE(space.Take(24) == kFirst + 24);
  REQUIRE(space.Take(16) == kFirst);
  REQUIRE(space.Take(440) == std::nullopt);
  REQUIRE(space.Take(432) == kFirst + 48);
  REQUIRE(space.Take(328) == kFirst + 552);
}

TEST_CASE("LocalSpace: contains the bucket's bytes behind its header and no others") {
  const LocalSpace space(kBucket, 512);
  REQUIRE_FALSE(space.Contains(kBucket));
  REQUIRE_FALSE(space.Contains(kBucket + 136));
  REQUIRE(space.Contains(kBucket + 144));
  REQUIRE(space.Contains(kBucket + 504));
  REQUIRE_FALSE(space.Contains(kBucket + 512));
}

TEST_CASE("LocalSpace: random fillings of every bucket size agree with a simple model") {
  Random random(test::Seed());
  for (uint32_t bucket_bytes = kBucketBytesMin; bucket_bytes <= kBucketBytesMax;
       bucket_bytes *= 2) {
    for (int round = 0; round < 200; ++round) {
      LocalSpace space(kBucket, bucket_bytes);
      std::vector<bool> used((bucket_bytes - kBucketHeaderBytes) / 8, false);
      for (int step = 0; step < 60; ++step) {
        const uint64_t units = random.Between(1, 40);
        std::optional<RegionOffset> expected;
        for (size_t first = 0; first + units <= used.size() && !expected; ++first) {
          bool free = true;
          for (size_t i = first; i < first + units; ++i) free = free && !used[i];
          if (!free) continue;
          expected = kFirst + first * 8;
          for (size_t i = first; i < first + units; ++i) used[i] = true;
        }
        REQUIRE(space.Take(units * 8) == expected);
      }
    }
  }
}

TEST_CASE("LocalItemBytesMax: a third of the local space, in whole units") {
  REQUIRE(LocalItemBytesMax(512) == 120);
  REQUIRE(LocalItemBytesMax(1024) == 288);
  REQUIRE(LocalItemBytesMax(4096) == 1312);
}

}  // namespace
}  // namespace kvd
