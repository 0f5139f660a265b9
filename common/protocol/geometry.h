// From a key's hash to the place of its bucket. Source: Litwin, "Linear hashing", VLDB 1980; one table per shard.
//
// The hash's bits: 63..48 choose the shard, 47..36 are the slot's tag, 31..0 choose the bucket in the shard.
#pragma once

#include <bit>
#include <cstdint>

#include "absl/status/status.h"
#include "common/base/hash.h"
#include "common/layout/hello.h"
#include "common/layout/superblock.h"
#include "common/layout/units.h"

namespace kvd {

// What a client must know of a region to read it. Immutable for one incarnation.
struct Geometry {
  uint64_t incarnation = 0;
  uint64_t region_bytes = 0;
  uint64_t directory_offset = 0;
  uint32_t directory_entries = 0;
  uint32_t bucket_bytes = 0;
  uint32_t shard_count = 0;

  uint32_t buckets_per_segment() const { return kSegmentBytes / bucket_bytes; }
  uint64_t hash_seed() const { return Mix64(incarnation ^ 0x68617368); }

  // True if [offset, offset + bytes) lies in the region.
  bool Contains(RegionOffset offset, uint64_t bytes) const {
    return ToBytes(offset) <= region_bytes && bytes <= region_bytes - ToBytes(offset);
  }

  // The directory entry that says in which segment the bucket lies.
  uint64_t DirectoryIndex(uint32_t shard, BucketIndex bucket) const {
    return uint64_t{ToNumber(bucket) / buckets_per_segment()} * shard_count + shard;
  }
};

// Takes the geometry out of an admission, after checking every number in it: powers of two where they must be, the
// directory inside the region, at least one entry a shard. InvalidArgument names the first number that is wrong.
absl::Status CheckGeometry(const Geometry& geometry);

constexpr uint32_t ShardOf(uint64_t hash, uint32_t shard_count) {
  return static_cast<uint32_t>((hash >> 48) * shard_count >> 16);
}

constexpr uint32_t LowBits(uint64_t hash, uint32_t depth) {
  return depth >= 32 ? static_cast<uint32_t>(hash) : static_cast<uint32_t>(hash) & ((1u << depth) - 1);
}

// The bucket of `hash` in a table of `bucket_count` buckets, at least one.
constexpr BucketIndex BucketOf(uint64_t hash, uint32_t bucket_count) {
  const uint32_t depth = static_cast<uint32_t>(std::bit_width(bucket_count - 1));
  uint32_t bucket = LowBits(hash, depth);
  if (bucket >= bucket_count) bucket = LowBits(hash, depth - 1);
  return BucketIndex{bucket};
}

// Where a key of `hash` lives that a reader sought in `bucket`, whose header has `depth`; `bucket`
// itself if that is it. Splits first: of all that `depth` tells of it follows the first that moved
// the key. That one has taken place, so the bucket exists. (The bucket that all `depth` bits name
// need not: in the middle of a doubling the one that the first split made may not have been split
// itself.) A depth too small for the bucket's own number says that the bucket was merged into
// another one, named by `depth` bits.
constexpr BucketIndex FollowDepth(uint64_t hash, BucketIndex bucket, uint32_t depth) {
  if (depth < 32 && ToNumber(bucket) >> depth != 0) return BucketIndex{LowBits(hash, depth)};
  const uint32_t differing = LowBits(hash, depth) ^ ToNumber(bucket);
  return BucketIndex{ToNumber(bucket) | (differing & (~differing + 1))};
}

// The depth of a bucket that has been merged away: too small for its number, so that no key is
// sought in it. Bucket 0 is never merged.
constexpr uint32_t MergedDepth(BucketIndex bucket) {
  return static_cast<uint32_t>(std::bit_width(ToNumber(bucket))) - 1;
}

// Where a key stands in the order in which SCAN and FLUSH go through a shard: the low 32 bits of
// its hash, the lowest first. In this order every bucket, whatever its depth, has one interval to
// itself, and a split or a merge only moves borders between intervals. So whoever remembers how far
// he has come misses nothing and meets nothing twice.
constexpr uint32_t WalkOrder(uint64_t hash) {
  uint32_t bits = static_cast<uint32_t>(hash);
  bits = (bits & 0x55555555) << 1 | (bits >> 1 & 0x55555555);
  bits = (bits & 0x33333333) << 2 | (bits >> 2 & 0x33333333);
  bits = (bits & 0x0f0f0f0f) << 4 | (bits >> 4 & 0x0f0f0f0f);
  bits = (bits & 0x00ff00ff) << 8 | (bits >> 8 & 0x00ff00ff);
  return bits << 16 | bits >> 16;
}

// The hash bits that choose a bucket, of the keys at that place in the order.
constexpr uint32_t HashAtWalkOrder(uint32_t position) { return WalkOrder(position); }

inline constexpr uint64_t kWalkEnd = uint64_t{1} << 32;

// The end of the interval of a bucket of that depth, at most 32; kWalkEnd for the last one.
constexpr uint64_t WalkEndOf(BucketIndex bucket, uint32_t depth) {
  return uint64_t{WalkOrder(ToNumber(bucket))} + (kWalkEnd >> depth);
}

}  // namespace kvd
