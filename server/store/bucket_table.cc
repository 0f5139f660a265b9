#include "server/store/bucket_table.h"

#include <algorithm>

#include "common/layout/checked_word.h"
#include "server/store/bucket_chain.h"
#include "server/store/region_writes.h"

namespace kvd {

// However far it grows, growing asks for no memory but the region's.
BucketTable::BucketTable(Region& region, uint32_t shard) : region_(&region), shard_(shard) {
  const Geometry& geometry = region.geometry();
  const uint64_t segments_max = geometry.directory_entries / geometry.shard_count + 1;
  segments_.reserve(segments_max);
  last_versions_.reserve(segments_max);
}

// What lay here before is no part of it: in particular the version goes on from the bucket's last.
void BucketTable::MakeHeaders(RegionOffset segment, uint64_t number) {
  const Geometry& geometry = region_->geometry();
  if (number == last_versions_.size()) last_versions_.push_back(0);
  for (uint32_t i = 0; i < geometry.buckets_per_segment(); ++i) {
    const BucketIndex bucket{static_cast<uint32_t>(number * geometry.buckets_per_segment()) + i};
    const RegionOffset place = segment + uint64_t{i} * geometry.bucket_bytes;
    StoreWord(region_->At(place), uint64_t{last_versions_[number]} << 32);
    BucketChain(*region_, shard_, bucket, place)
        .Rewrite(ToNumber(bucket) == 0 ? 0 : MergedDepth(bucket), {}, {});
  }
}

bool BucketTable::PlaceNext() {
  const Geometry& geometry = region_->geometry();
  const uint64_t number = segments_.size();
  if (count() / geometry.buckets_per_segment() < number) return true;
  const uint64_t entry = number * geometry.shard_count + shard_;
  if (entry >= geometry.directory_entries || count() == UINT32_MAX) return false;
  const std::optional<RegionOffset> segment =
      region_->AllocateIndexSegment({.zone = shard_, .only = keeps_to_zone_});
  if (!segment) return false;
  MakeHeaders(*segment, number);
  PublishSegment(number, *segment);
  segments_.push_back(*segment);
  index_bytes_.Add(kSegmentBytes);
  return true;
}

void BucketTable::PublishSegment(uint64_t number, RegionOffset segment) {
  const Geometry& geometry = region_->geometry();
  const uint64_t entry = number * geometry.shard_count + shard_;
  StoreWordRelease(region_->At(RegionOffset{geometry.directory_offset + entry * sizeof(uint64_t)}),
                   PackCheckedWord(CheckedWordKind::kDirectoryEntry, entry, geometry.incarnation,
                                   static_cast<uint32_t>(ToBytes(segment) / kSegmentBytes)));
}

void BucketTable::MoveSegment(uint32_t number, RegionOffset to) {
  PublishSegment(number, to);
  OrderStores();
  segments_[number] = to;
}

std::optional<RegionOffset> BucketTable::EmptySegment() const {
  const uint32_t per_segment = region_->geometry().buckets_per_segment();
  if (placed() - count() < per_segment) return std::nullopt;
  return segments_.back();
}

// The entry goes before the pages do. A reader that has it still finds headers that send it back,
// or, when the pages are used for something else, nothing that verifies.
void BucketTable::GiveBackEmptySegment() {
  const Geometry& geometry = region_->geometry();
  const RegionOffset segment = segments_.back();
  segments_.pop_back();
  const uint64_t number = segments_.size();
  for (uint64_t at = 0; at < kSegmentBytes; at += geometry.bucket_bytes) {
    const auto& header = *reinterpret_cast<const BucketHeader*>(region_->At(segment + at));
    last_versions_[number] = std::max(last_versions_[number], header.version);
  }
  const uint64_t entry = number * geometry.shard_count + shard_;
  StoreWordRelease(region_->At(RegionOffset{geometry.directory_offset + entry * sizeof(uint64_t)}),
                   0);
  OrderStores();
  index_bytes_.Subtract(kSegmentBytes);
  region_->FreePages(segment, kSegmentBytes);
}

void BucketTable::PublishCount(uint32_t count) {
  count_.Set(count);
  StoreWordRelease(&region_->superblock().bucket_counts[shard_],
                   PackCheckedWord(CheckedWordKind::kBucketCount, shard_,
                                   region_->geometry().incarnation, count));
  OrderStores();
}

}  // namespace kvd
