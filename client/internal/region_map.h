// What a client has learned of where buckets lie: hints that every read verifies, so being out of date costs a read
// and never an answer.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "common/layout/item.h"
#include "common/layout/slot.h"
#include "common/protocol/geometry.h"

namespace kvd {

class RegionMap {
 public:
  // `item_bytes_max`: no item of this region occupies more; a slot that claims more is not believed.
  RegionMap(const Geometry& geometry, uint64_t item_bytes_max)
      : geometry_(geometry),
        item_bytes_max_(item_bytes_max),
        segment_shift_(std::countr_zero(geometry.buckets_per_segment())),
        bucket_shift_(std::countr_zero(geometry.bucket_bytes)),
        bucket_counts_(geometry.shard_count, 1),
        segments_(geometry.directory_entries, 0) {}

  const Geometry& geometry() const { return geometry_; }

  // True if a slot may point to where it does: inside the region, not longer than any item.
  bool Plausible(Slot slot) const {
    const uint64_t bytes = ItemBytesOf(slot);
    return bytes >= kItemHeaderBytes && bytes <= item_bytes_max_ && geometry_.Contains(LocationOf(slot), bytes);
  }

  uint32_t bucket_count(uint32_t shard) const { return bucket_counts_[shard]; }

  // A shard has at least `count` buckets. Ignored: numbers smaller than known (tables only grow), and numbers for which
  // the directory has no room.
  void LearnBucketCount(uint32_t shard, uint32_t count) {
    if (count <= bucket_counts_[shard]) return;
    if (geometry_.DirectoryIndex(shard, BucketIndex{count - 1}) >= geometry_.directory_entries) return;
    bucket_counts_[shard] = count;
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

 private:
  Geometry geometry_;
  uint64_t item_bytes_max_;
  int segment_shift_;  // of buckets per segment
  int bucket_shift_;   // of bytes per bucket
  std::vector<uint32_t> bucket_counts_;
  std::vector<uint32_t> segments_;
};

}  // namespace kvd
