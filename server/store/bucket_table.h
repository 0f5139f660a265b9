// Where a shard's buckets lie: the segments, the directory entries and the bucket count that
// readers find them by.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/layout/bucket.h"
#include "common/layout/units.h"
#include "server/store/counter.h"
#include "server/store/region.h"

namespace kvd {

class BucketTable {
 public:
  BucketTable(Region& region, uint32_t shard) : region_(&region), shard_(shard) {}

  uint32_t count() const { return static_cast<uint32_t>(count_.get()); }
  uint64_t index_bytes() const { return index_bytes_.get(); }

  BucketIndex BucketOfHash(uint64_t hash) const { return BucketOf(hash, count()); }
  RegionOffset PlaceOf(BucketIndex bucket) const {
    const uint32_t per_segment = region_->geometry().buckets_per_segment();
    return segments_[ToNumber(bucket) / per_segment] +
           uint64_t{ToNumber(bucket) % per_segment} * region_->geometry().bucket_bytes;
  }

  // Makes sure that bucket number count() has a place, and readers a directory entry for it. False:
  // no room.
  bool PlaceNext();

  // Buckets [0, count) are complete; tells readers.
  void PublishCount(uint32_t count);

 private:
  Region* region_;
  uint32_t shard_;
  std::vector<RegionOffset> segments_;
  Counter count_;
  Counter index_bytes_;
};

}  // namespace kvd
