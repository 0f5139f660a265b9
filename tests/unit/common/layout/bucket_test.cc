// A bucket's header: link, and a checksum that belongs to one place in one incarnation.
#include "common/layout/bucket.h"

#include <algorithm>
#include <vector>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr uint64_t kIncarnation = 0xfeedface12345678;

BucketHeader RandomHeader(Random& random) {
  BucketHeader header;
  header.version = static_cast<uint32_t>(random.Next());
  header.link = PackLink(static_cast<uint32_t>(random.Uniform(33)),
                         RegionOffset{random.Uniform(1 << 30) * 8}, random.Next() & 0xffff);
  for (Slot& slot : header.slots) slot = random.OneIn(3) ? kEmptySlot : random.Next();
  header.checksum =
      HeaderChecksum(header, HeaderSeed(kIncarnation, 1, BucketIndex{2}, RegionOffset{0}));
  return header;
}

TEST_CASE("BucketHeader: depth and overflow location come back") {
  for (uint32_t depth = 0; depth <= 32; ++depth) {
    for (const uint64_t at : {uint64_t{0}, uint64_t{8}, uint64_t{1} << 20, kLocationUnitsMax * 8}) {
      for (const uint64_t filter : {0u, 1u, 0x8001u, 0xffffu}) {
        const uint64_t link = PackLink(depth, RegionOffset{at}, filter);
        CHECK(DepthOf(link) == depth);
        CHECK(OverflowOf(link) == RegionOffset{at});
        CHECK(ChainFilterOf(link) == filter);
      }
    }
  }
}

TEST_CASE("BucketHeader: the chain is for tags whose bit is in the filter") {
  constexpr RegionOffset kChain{4096};
  for (uint32_t tag = 0; tag < 4096; ++tag) {
    CHECK(ChainFor(PackLink(5, kChain, ChainFilterBit(tag)), tag) == kChain);
    CHECK(ChainFor(PackLink(5, kChain, ~ChainFilterBit(tag) & 0xffff), tag) == RegionOffset{0});
  }
}

TEST_CASE("BucketHeader: no flipped bit verifies") {
  Random random(Seed());
  const uint64_t seed = HeaderSeed(kIncarnation, 1, BucketIndex{2}, RegionOffset{0});
  for (int i = 0; i < 100; ++i) {
    const BucketHeader header = RandomHeader(random);
    REQUIRE(HeaderChecksum(header, seed) == header.checksum);
    for (size_t bit = 0; bit < sizeof(header) * 8; ++bit) {
      BucketHeader flipped = header;
      reinterpret_cast<uint8_t*>(&flipped)[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      if (HeaderChecksum(flipped, seed) == flipped.checksum) FAIL("bit " << bit);
    }
  }
}

TEST_CASE(
    "BucketHeader: a header of another incarnation, shard, bucket or chain place does not verify") {
  Random random(Seed());
  for (int i = 0; i < 1000; ++i) {
    const BucketHeader header = RandomHeader(random);
    const auto verifies = [&](uint64_t incarnation, uint32_t shard, uint32_t bucket,
                              uint64_t overflow) {
      return HeaderChecksum(header, HeaderSeed(incarnation, shard, BucketIndex{bucket},
                                               RegionOffset{overflow})) == header.checksum;
    };
    REQUIRE(verifies(kIncarnation, 1, 2, 0));
    CHECK_FALSE(verifies(kIncarnation + 1, 1, 2, 0));
    CHECK_FALSE(verifies(kIncarnation, 0, 2, 0));
    CHECK_FALSE(verifies(kIncarnation, 2, 1, 0));
    CHECK_FALSE(verifies(kIncarnation, 1, 3, 0));
    CHECK_FALSE(verifies(kIncarnation, 1, 2, 8 + random.Uniform(1 << 20) * 8));
  }
}

TEST_CASE("BucketHeader: seeds of neighbouring places differ") {
  std::vector<uint64_t> seeds;
  for (uint32_t shard = 0; shard < 4; ++shard) {
    for (uint32_t bucket = 0; bucket < 64; ++bucket) {
      for (uint64_t overflow = 0; overflow < 64 * 8; overflow += 8) {
        seeds.push_back(
            HeaderSeed(kIncarnation, shard, BucketIndex{bucket}, RegionOffset{overflow}));
      }
    }
  }
  std::sort(seeds.begin(), seeds.end());
  CHECK(std::adjacent_find(seeds.begin(), seeds.end()) == seeds.end());
}

TEST_CASE("BucketHeader: memory of zeroes does not verify") {
  const BucketHeader zero{};
  Random random(Seed());
  for (uint32_t bucket = 0; bucket < 10'000; ++bucket) {
    if (HeaderChecksum(zero, HeaderSeed(random.Next(), 0, BucketIndex{bucket}, RegionOffset{0})) ==
        0)
      FAIL(bucket);
  }
}

}  // namespace
}  // namespace kvd::test
