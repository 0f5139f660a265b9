// From hash to bucket: linear hashing's rules; and what a geometry may be.
#include "common/protocol/geometry.h"

#include <bit>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/layout/slot.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;

Geometry Good() {
  Geometry geometry;
  geometry.incarnation = 1;
  geometry.region_bytes = uint64_t{64} << 20;
  geometry.directory_offset = sizeof(Superblock);
  geometry.directory_entries = 64;
  geometry.bucket_bytes = 1024;
  geometry.shard_count = 4;
  return geometry;
}

// The depth of a bucket in a table of `count` buckets, from the rule of linear hashing.
uint32_t DepthIn(uint32_t bucket, uint32_t count) {
  const auto level = static_cast<uint32_t>(std::bit_width(count - 1));
  if (level == 0) return 0;
  const uint32_t half = 1u << (level - 1);
  const bool split = bucket >= half || bucket + half < count;
  return split ? level : level - 1;
}

TEST_CASE("BucketOf: a bucket more moves keys to that bucket only") {
  Random random(Seed());
  for (int i = 0; i < 2000; ++i) {
    const uint64_t hash = random.Next();
    for (uint32_t count = 1; count < 300; ++count) {
      const uint32_t before = ToNumber(BucketOf(hash, count));
      const uint32_t after = ToNumber(BucketOf(hash, count + 1));
      if (before >= count || (after != before && after != count))
        FAIL("hash " << hash << " count " << count);
    }
  }
}

TEST_CASE(
    "BucketOf: a bucket's keys agree with its number by its depth's bits, and only they lie "
    "there") {
  Random random(Seed());
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t hash = random.Next();
    const uint32_t count =
        1 + static_cast<uint32_t>(random.Next() >> 32 >> random.Uniform(32)) % UINT32_MAX;
    const uint32_t bucket = ToNumber(BucketOf(hash, count));
    if (LowBits(hash, DepthIn(bucket, count)) != bucket)
      FAIL("hash " << hash << " count " << count);
  }
}

TEST_CASE("BucketOf: extreme counts") {
  CHECK(ToNumber(BucketOf(~uint64_t{0}, 1)) == 0);
  CHECK(ToNumber(BucketOf(~uint64_t{0}, 2)) == 1);
  CHECK(ToNumber(BucketOf(~uint64_t{0}, 3)) == 1);
  CHECK(ToNumber(BucketOf(~uint64_t{0}, UINT32_MAX)) == 0x7fffffff);
  CHECK(ToNumber(BucketOf(0xfffffffe, UINT32_MAX)) == 0xfffffffe);
  CHECK(ToNumber(BucketOf(0x80000000, 0x80000001)) == 0x80000000);
}

TEST_CASE("LowBits: as many as asked for, at most 32") {
  CHECK(LowBits(~uint64_t{0}, 0) == 0);
  CHECK(LowBits(~uint64_t{0}, 1) == 1);
  CHECK(LowBits(~uint64_t{0}, 31) == 0x7fffffff);
  CHECK(LowBits(~uint64_t{0}, 32) == 0xffffffff);
  CHECK(LowBits(~uint64_t{0}, 255) == 0xffffffff);
}

TEST_CASE(
    "FollowDepth: from any bucket that held the key once, over buckets that exist, to the one that "
    "has it") {
  Random random(Seed());
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t hash = random.Next();
    const auto count = static_cast<uint32_t>(1 + random.Uniform(5000));
    const auto known = static_cast<uint32_t>(1 + random.Uniform(count));
    BucketIndex bucket = BucketOf(hash, known);
    int steps = 0;
    for (;;) {
      const BucketIndex next = FollowDepth(hash, bucket, DepthIn(ToNumber(bucket), count));
      if (next == bucket) break;
      if (ToNumber(next) >= count || ++steps > 32)
        FAIL("hash " << hash << " count " << count << " known " << known);
      bucket = next;
    }
    if (bucket != BucketOf(hash, count))
      FAIL("hash " << hash << " count " << count << " known " << known);
  }
}

TEST_CASE("FollowDepth: what it names is new even to a table with one bucket more") {
  // The client's next guess, made of the bucket that it was sent to, is never the bucket that sent
  // it away.
  Random random(Seed());
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t hash = random.Next();
    const auto count = static_cast<uint32_t>(2 + random.Uniform(5000));
    const auto known = static_cast<uint32_t>(1 + random.Uniform(count));
    const BucketIndex bucket = BucketOf(hash, known);
    const BucketIndex next = FollowDepth(hash, bucket, DepthIn(ToNumber(bucket), count));
    if (next == bucket) continue;
    const auto guess = static_cast<uint32_t>(random.Between(ToNumber(next) + 1, count));
    if (BucketOf(hash, guess) == bucket)
      FAIL("hash " << hash << " count " << count << " guess " << guess);
  }
}

TEST_CASE("FollowDepth: from any bucket of a larger table, down to the one that has the key") {
  Random random(Seed());
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t hash = random.Next();
    const auto known = static_cast<uint32_t>(2 + random.Uniform(5000));
    const auto count = static_cast<uint32_t>(1 + random.Uniform(known - 1));
    BucketIndex bucket = BucketOf(hash, known);
    int steps = 0;
    while (ToNumber(bucket) >= count) {  // merged: as it was left
      const BucketIndex next = FollowDepth(hash, bucket, MergedDepth(bucket));
      if (ToNumber(next) >= ToNumber(bucket) || ++steps > 32) {
        FAIL("hash " << hash << " count " << count << " known " << known);
      }
      bucket = next;
    }
    if (bucket != BucketOf(hash, ToNumber(bucket) + 1)) {
      FAIL("hash " << hash << " count " << count << " known " << known);
    }
  }
}

TEST_CASE(
    "WalkOrder: the buckets of a table, of any count, have intervals that follow one another") {
  Random random(Seed());
  for (uint32_t count = 1; count < 300; ++count) {
    uint64_t at = 0;
    uint32_t met = 0;
    while (at < kWalkEnd) {
      const BucketIndex bucket = BucketOf(HashAtWalkOrder(static_cast<uint32_t>(at)), count);
      REQUIRE(at == WalkOrder(ToNumber(bucket)));
      const uint64_t end = WalkEndOf(bucket, DepthIn(ToNumber(bucket), count));
      const auto inside = static_cast<uint32_t>(at + random.Uniform(end - at));
      REQUIRE(BucketOf(HashAtWalkOrder(inside), count) == bucket);
      REQUIRE(WalkOrder(HashAtWalkOrder(inside)) == inside);
      at = end;
      ++met;
    }
    REQUIRE(at == kWalkEnd);
    REQUIRE(met == count);
  }
  CHECK(WalkEndOf(BucketIndex{0xffffffff}, 32) == kWalkEnd);
}

TEST_CASE("ShardOf: every shard gets its share of hashes, by the top 16 bits") {
  for (const uint32_t shards : {1u, 2u, 3u, 7u, 255u, 256u}) {
    std::vector<uint32_t> counts(shards);
    for (uint64_t top = 0; top < 65536; ++top) {
      const uint32_t shard = ShardOf(top << 48 | 0x123456789abc, shards);
      REQUIRE(shard < shards);
      ++counts[shard];
    }
    for (const uint32_t count : counts)
      CHECK((count >= 65536 / shards && count <= 65536 / shards + 1));
  }
}

TEST_CASE("Geometry: shard, tag and bucket come from different bits of the hash") {
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t hash = uint64_t{1} << bit;
    const int fields = (ShardOf(hash, 256) != 0 ? 1 : 0) + (SlotTag(hash) != 0 ? 1 : 0) +
                       (LowBits(hash, 32) != 0 ? 1 : 0);
    CHECK(fields <= 1);
  }
}

TEST_CASE("Geometry: Contains does not overflow") {
  const Geometry geometry = Good();
  CHECK(geometry.Contains(RegionOffset{0}, geometry.region_bytes));
  CHECK(geometry.Contains(RegionOffset{geometry.region_bytes}, 0));
  CHECK_FALSE(geometry.Contains(RegionOffset{geometry.region_bytes}, 1));
  CHECK_FALSE(geometry.Contains(RegionOffset{8}, ~uint64_t{0}));
  CHECK_FALSE(geometry.Contains(RegionOffset{~uint64_t{0}}, 8));
  CHECK_FALSE(geometry.Contains(RegionOffset{geometry.region_bytes - 8}, 9));
}

TEST_CASE("Geometry: directory entries of all shards and segments are different") {
  const Geometry geometry = Good();
  CHECK(geometry.buckets_per_segment() == 1024);
  CHECK(geometry.DirectoryIndex(3, BucketIndex{1023}) == 3);
  CHECK(geometry.DirectoryIndex(0, BucketIndex{1024}) == 4);
  CHECK(geometry.DirectoryIndex(3, BucketIndex{UINT32_MAX}) == uint64_t{UINT32_MAX / 1024} * 4 + 3);
}

TEST_CASE("CheckGeometry: accepts what a server makes, at both ends") {
  Geometry geometry = Good();
  KVD_REQUIRE_OK(CheckGeometry(geometry));
  for (const uint32_t bucket : {512u, 1024u, 2048u, 4096u}) {
    geometry.bucket_bytes = bucket;
    KVD_REQUIRE_OK(CheckGeometry(geometry));
  }
  geometry.shard_count = 256;
  geometry.directory_entries = 256;
  KVD_REQUIRE_OK(CheckGeometry(geometry));
  geometry.region_bytes = (kLocationUnitsMax + 1) * kLocationUnitBytes - 1;
  KVD_REQUIRE_OK(CheckGeometry(geometry));
}

TEST_CASE("CheckGeometry: names the number that cannot be") {
  struct Bad {
    void (*spoil)(Geometry&);
    const char* message;
  };
  const Bad bad = GENERATE(values<Bad>({
      {[](Geometry& g) { g.incarnation = 0; }, "incarnation"},
      {[](Geometry& g) { g.bucket_bytes = 0; }, "bucket of 0 bytes"},
      {[](Geometry& g) { g.bucket_bytes = 256; }, "bucket of 256 bytes"},
      {[](Geometry& g) { g.bucket_bytes = 1000; }, "bucket of 1000 bytes"},
      {[](Geometry& g) { g.bucket_bytes = 8192; }, "bucket of 8192 bytes"},
      {[](Geometry& g) { g.shard_count = 0; }, "0 shards"},
      {[](Geometry& g) { g.shard_count = 257; }, "257 shards"},
      {[](Geometry& g) { g.region_bytes = uint64_t{1} << 43; }, "region of 8796093022208 bytes"},
      {[](Geometry& g) { g.region_bytes = ~uint64_t{0}; }, "region of"},
      {[](Geometry& g) { g.directory_entries = 3; }, "directory of 3 entries for 4 shards"},
      {[](Geometry& g) { g.directory_entries = UINT32_MAX; }, "is not inside the region"},
      {[](Geometry& g) { g.directory_offset = 0; }, "at 0 is not inside"},
      {[](Geometry& g) { g.directory_offset = 4092; }, "at 4092"},
      {[](Geometry& g) { g.directory_offset = 4100; }, "at 4100"},
      {[](Geometry& g) { g.directory_offset = g.region_bytes - 8; }, "is not inside the region"},
      {[](Geometry& g) { g.directory_offset = ~uint64_t{7}; }, "is not inside the region"},
      {[](Geometry& g) { g.region_bytes = 4096; }, "is not inside the region of 4096 bytes"},
  }));
  Geometry geometry = Good();
  bad.spoil(geometry);
  const absl::Status status = CheckGeometry(geometry);
  KVD_REQUIRE_CODE(status, kInvalidArgument);
  CHECK_THAT(MessageOf(status), Contains(bad.message));
}

}  // namespace
}  // namespace kvd::test
