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

// Where the keys of `hash` went when `bucket`, in which they lay earlier, was split; `bucket` itself if they are still
// in it. `depth` is the bucket's own. Of all the splits that `depth` tells of it follows the first that moved the key:
// that one has taken place, so the bucket exists. (The bucket that all `depth` bits name need not: in the middle of a
// doubling the one that the first split made may not have been split itself.)
constexpr BucketIndex FollowSplit(uint64_t hash, BucketIndex bucket, uint32_t depth) {
  const uint32_t differing = LowBits(hash, depth) ^ ToNumber(bucket);
  return BucketIndex{ToNumber(bucket) | (differing & (~differing + 1))};
}

}  // namespace kvd
