#include "server/store/bucket_table.h"

#include "common/layout/checked_word.h"
#include "server/store/region_writes.h"

namespace kvd {

bool BucketTable::PlaceNext() {
  const Geometry& geometry = region_->geometry();
  const uint64_t number = segments_.size();
  if (count() / geometry.buckets_per_segment() < number) return true;
  const uint64_t entry = number * geometry.shard_count + shard_;
  if (entry >= geometry.directory_entries || count() == UINT32_MAX) return false;
  const std::optional<RegionOffset> segment = region_->AllocateIndexSegment();
  if (!segment) return false;
  // What lay here before must not pass for a header. All-zero does not verify.
  for (uint64_t at = 0; at < kSegmentBytes; at += geometry.bucket_bytes) {
    for (uint64_t word = 0; word < kBucketHeaderBytes; word += sizeof(uint64_t)) {
      StoreWord(region_->At(*segment + at + word), 0);
    }
  }
  // Release: a reader that finds the entry finds zeroed headers (partner: its acquire between
  // directory and bucket).
  StoreWordRelease(region_->At(RegionOffset{geometry.directory_offset + entry * sizeof(uint64_t)}),
                   PackCheckedWord(CheckedWordKind::kDirectoryEntry, entry, geometry.incarnation,
                                   static_cast<uint32_t>(ToBytes(*segment) / kSegmentBytes)));
  segments_.push_back(*segment);
  index_bytes_.Add(kSegmentBytes);
  return true;
}

void BucketTable::PublishCount(uint32_t count) {
  count_.Set(count);
  StoreWordRelease(&region_->superblock().bucket_counts[shard_],
                   PackCheckedWord(CheckedWordKind::kBucketCount, shard_,
                                   region_->geometry().incarnation, count));
  OrderStores();
}

}  // namespace kvd
