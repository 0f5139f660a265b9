// Where a shard's buckets lie: the segments, the directory entries and the bucket count that
// readers find them by.
//
// In every segment of a table, buckets beyond the count have headers too: empty, and of a depth
// that sends readers back (MergedDepth), as a merge leaves them. So does a segment that is given
// back, until its memory is used for something else. A header's versions go on from those that the
// bucket had in earlier segments, so that a reader who compares two reads of a header never takes a
// bucket for unchanged that was given back and made anew in between.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/counter.h"
#include "common/layout/bucket.h"
#include "common/layout/units.h"
#include "server/store/region.h"

namespace kvd {

class BucketTable {
 public:
  BucketTable(Region& region, uint32_t shard);

  uint32_t count() const { return static_cast<uint32_t>(count_.get()); }
  uint64_t index_bytes() const { return index_bytes_.get(); }

  BucketIndex BucketOfHash(uint64_t hash) const { return BucketOf(hash, count()); }
  RegionOffset PlaceOf(BucketIndex bucket) const {
    const uint32_t per_segment = region_->geometry().buckets_per_segment();
    return segments_[ToNumber(bucket) / per_segment] +
           uint64_t{ToNumber(bucket) % per_segment} * region_->geometry().bucket_bytes;
  }

  // Whether it takes segments of its shard's zone only; at first it does not.
  void KeepToZone(bool only) { keeps_to_zone_ = only; }

  // Makes sure that bucket number count() has a place, and readers a directory entry for it. False:
  // no room.
  bool PlaceNext();

  // Buckets [0, count) are complete; tells readers.
  void PublishCount(uint32_t count);

  // Buckets that have a place: count(), and those beyond it in the last segments.
  uint32_t placed() const {
    return static_cast<uint32_t>(segments_.size() * region_->geometry().buckets_per_segment());
  }
  uint32_t segments() const { return static_cast<uint32_t>(segments_.size()); }
  RegionOffset SegmentAt(uint32_t number) const { return segments_[number]; }
  // From now on that segment lies at `to`, where its headers are complete; readers are told. Its
  // pages so far are the caller's.
  void MoveSegment(uint32_t number, RegionOffset to);

  // The last segment, if it holds no bucket any more.
  std::optional<RegionOffset> EmptySegment() const;
  // Gives that one back: readers are told, then its pages are free.
  void GiveBackEmptySegment();

 private:
  void MakeHeaders(RegionOffset segment, uint64_t number);
  // Release: a reader that finds the entry finds the headers there (partner: its acquire between
  // directory and bucket).
  void PublishSegment(uint64_t number, RegionOffset segment);

  Region* region_;
  uint32_t shard_;
  bool keeps_to_zone_ = false;
  std::vector<RegionOffset> segments_;
  std::vector<uint32_t> last_versions_;  // by segment: of any header it had when it was given back
  Counter count_;
  Counter index_bytes_;
};

}  // namespace kvd
