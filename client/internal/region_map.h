// What a client has learned of where buckets lie: hints that every read verifies, so being out of date costs a read
// and never an answer. Tables grow and shrink, and segments of buckets that were given back may come to lie elsewhere.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/layout/item.h"
#include "common/layout/slot.h"
#include "common/protocol/geometry.h"

namespace kvd {

class RegionMap {
 public:
  // `item_bytes_max`: no item of this region occupies more; a slot that claims more is not believed. `server_clock`: what
  // items expire by, null for never; it outlives the map.
  RegionMap(const Geometry& geometry, uint64_t item_bytes_max, const Clock* server_clock = nullptr)
      : geometry_(geometry),
        item_bytes_max_(item_bytes_max),
        server_clock_(server_clock),
        segment_shift_(std::countr_zero(geometry.buckets_per_segment())),
        bucket_shift_(std::countr_zero(geometry.bucket_bytes)),
        tables_(geometry.shard_count),
        segments_(geometry.directory_entries, 0) {}

  const Geometry& geometry() const { return geometry_; }
  const Clock* server_clock() const { return server_clock_; }

  // True if a slot may point to where it does: inside the region, not longer than any item.
  bool Plausible(Slot slot) const {
    const uint64_t bytes = ItemBytesOf(slot);
    return bytes >= kItemBytesMin && bytes <= item_bytes_max_ && geometry_.Contains(LocationOf(slot), bytes);
  }

  uint32_t bucket_count(uint32_t shard) const { return tables_[shard].buckets; }

  // A shard has `count` buckets, as its count word or a bucket's depth says. Where that is less
  // than was known, the places of the segments that hold none of them are forgotten: they may have
  // been given to others. Ignored: zero, and numbers for which the directory has no room.
  void LearnBucketCount(uint32_t shard, uint32_t count) {
    Table& table = tables_[shard];
    if (count == table.buckets || count == 0) return;
    if (geometry_.DirectoryIndex(shard, BucketIndex{count - 1}) >= geometry_.directory_entries) return;
    for (uint64_t gone = ((count - 1) >> segment_shift_) + uint64_t{1}; gone <= (table.buckets - 1) >> segment_shift_;
         ++gone) {
      ForgetSegment(gone * geometry_.shard_count + shard);
    }
    table = {count, static_cast<uint32_t>(std::bit_ceil(uint64_t{count}) - 1)};
  }

  // Where the bucket of `hash` lies, by what is known of the table's size; offset zero if its segment is not known yet.
  // The same as BucketOffset(shard, BucketOf(hash, bucket_count(shard))), in the fewest instructions.
  RegionOffset OffsetOfBucketOf(uint64_t hash) const {
    const uint32_t shard = ShardOf(hash, geometry_.shard_count);
    const Table table = tables_[shard];
    uint32_t bucket = static_cast<uint32_t>(hash) & table.mask;
    if (bucket >= table.buckets) bucket &= table.mask >> 1;
    // In the directory, because LearnBucketCount sees to that.
    const uint64_t segment = segments_[uint64_t{bucket >> segment_shift_} * geometry_.shard_count + shard];
    if (segment == 0) return RegionOffset{0};
    const uint64_t in_segment = bucket & ((1u << segment_shift_) - 1);
    return RegionOffset{segment * kSegmentBytes + (in_segment << bucket_shift_)};
  }

  // Where the bucket lies; offset zero if its directory entry has not been read yet or cannot exist.
  RegionOffset BucketOffset(uint32_t shard, BucketIndex bucket) const {
    const uint64_t index = uint64_t{ToNumber(bucket) >> segment_shift_} * geometry_.shard_count + shard;
    if (index >= segments_.size()) return RegionOffset{0};
    const uint64_t segment = segments_[index];
    if (segment == 0) return RegionOffset{0};
    const uint64_t in_segment = ToNumber(bucket) & ((1u << segment_shift_) - 1);
    return RegionOffset{segment * kSegmentBytes + (in_segment << bucket_shift_)};
  }

  // Segment 0 holds the superblock and is never an index segment, so zero can mean "unknown". Ignored if the segment
  // would not lie in the region.
  void LearnSegment(uint64_t directory_index, uint32_t segment) {
    if (directory_index >= segments_.size()) return;
    if (!geometry_.Contains(RegionOffset{uint64_t{segment} * kSegmentBytes}, kSegmentBytes)) return;
    segments_[directory_index] = segment;
  }

  // The segment may lie elsewhere by now, or be given back: the directory is to be read before its
  // buckets are.
  void ForgetSegment(uint64_t directory_index) {
    if (directory_index < segments_.size()) segments_[directory_index] = 0;
  }

 private:
  struct Table {
    uint32_t buckets = 1;
    uint32_t mask = 0;  // hash bits that name a bucket of the next whole power of two
  };

  Geometry geometry_;
  uint64_t item_bytes_max_;
  const Clock* server_clock_;
  int segment_shift_;  // of buckets per segment
  int bucket_shift_;   // of bytes per bucket
  std::vector<Table> tables_;  // by shard
  std::vector<uint32_t> segments_;
};

}  // namespace kvd
