#include "tests/unit/client/internal/test_region.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "common/base/check.h"
#include "common/layout/checked_word.h"
#include "common/layout/superblock.h"
#include "tests/support/encode_item.h"

namespace kvd::test {

TestRegion::TestRegion(uint64_t incarnation, uint32_t shard_count)
    : lines_(new Line[kRegionBytes / sizeof(Line)]()), shards_(shard_count) {
  geometry_.incarnation = incarnation;
  geometry_.region_bytes = kRegionBytes;
  geometry_.directory_offset = sizeof(Superblock);
  geometry_.directory_entries = 3 * shard_count;
  geometry_.bucket_bytes = kBucketBytes;
  geometry_.shard_count = shard_count;
  KVD_CHECK(CheckGeometry(geometry_).ok());
  segments_.resize(geometry_.directory_entries);
  for (uint32_t shard = 0; shard < shard_count; ++shard) {
    MakeBucket(shard, BucketIndex{0}, 0);
    PublishCount(shard);
  }
  SetLifeline(4711);
}

void TestRegion::MakeBucket(uint32_t shard, BucketIndex bucket, uint32_t depth) {
  const uint64_t index = geometry_.DirectoryIndex(shard, bucket);
  KVD_CHECK(index < segments_.size());
  if (segments_[index] == 0) SetDirectoryEntry(index, next_segment_++);
  shards_[shard].local_used.resize(ToNumber(bucket));
  shards_[shard].local_used.push_back(kBucketHeaderBytes);
  BucketHeader& header = HeaderAt(BucketOffset(shard, bucket));
  const uint32_t version = header.version;
  header = {};
  header.version = version;
  header.link = PackLink(depth, RegionOffset{0});
  Seal(shard, bucket, RegionOffset{0});
}

BucketIndex TestRegion::BucketOfKey(std::string_view key) const {
  return BucketOf(Hash(key), shards_[ShardOfKey(key)].bucket_count);
}

std::string TestRegion::KeyIn(uint32_t shard, BucketIndex bucket, uint32_t bucket_count,
                              std::string_view prefix, std::string_view tag_of) {
  for (;;) {
    std::string key = std::string(prefix) + std::to_string(next_key_++);
    const uint64_t hash = Hash(key);
    if (ShardOf(hash, geometry_.shard_count) != shard || BucketOf(hash, bucket_count) != bucket)
      continue;
    if (!tag_of.empty() && SlotTag(hash) != SlotTag(Hash(tag_of))) continue;
    return key;
  }
}

RegionOffset TestRegion::BucketOffset(uint32_t shard, BucketIndex bucket) const {
  const uint64_t in_segment = ToNumber(bucket) % geometry_.buckets_per_segment();
  return RegionOffset{uint64_t{segments_[geometry_.DirectoryIndex(shard, bucket)]} * kSegmentBytes +
                      in_segment * kBucketBytes};
}

RegionOffset TestRegion::HeapRoom(uint64_t bytes) {
  std::vector<RegionOffset>& free = free_[RoundUpItemSize(bytes)];
  if (!free.empty()) {
    const RegionOffset room = free.back();
    free.pop_back();
    return room;
  }
  heap_end_ -= RoundUpItemSize(bytes);
  KVD_CHECK(heap_end_ >= uint64_t{next_segment_} * kSegmentBytes);
  return RegionOffset{heap_end_};
}

void TestRegion::Free(Slot slot) {
  if (reuse_memory) free_[ItemBytesOf(slot)].push_back(LocationOf(slot));
}

RegionOffset TestRegion::LocalRoom(uint32_t shard, BucketIndex bucket, uint64_t bytes) {
  uint64_t& used = shards_[shard].local_used[ToNumber(bucket)];
  const uint64_t at = used;
  used += RoundUpItemSize(bytes);
  KVD_CHECK(used <= kBucketBytes);
  return BucketOffset(shard, bucket) + at;
}

Slot TestRegion::WriteItem(RegionOffset location, const TestItem& item) {
  const uint64_t version = item.version != 0 ? item.version : next_version_++;
  const std::string bytes = EncodeItem({.key = item.key,
                                        .value = item.value,
                                        .state = item.state,
                                        .version = version,
                                        .flags = item.flags,
                                        .expiry_unix_us = version * 7,
                                        .user_flags = version & 0xffffffff,
                                        .incarnation = geometry_.incarnation,
                                        .location = location});
  std::memcpy(At(location), bytes.data(), bytes.size());
  return PackSlot(SlotTag(Hash(item.key)), bytes.size() + item.extra_bytes, location);
}

std::string_view TestRegion::KeyAt(RegionOffset location) {
  const char* const at = reinterpret_cast<const char*>(At(location));
  ItemHeader header;
  std::memcpy(&header, at, sizeof(header));
  const uint64_t short_bytes = ShortKeyBytes(header.check_and_lengths);
  if (short_bytes != 0) return {at + kItemHeaderBytes, short_bytes};
  LongItemHeader more;
  std::memcpy(&more, at + kItemHeaderBytes, sizeof(more));
  return {at + kLongItemHeaderBytes + OptionalBytes(more.flags), more.key_len};
}

void TestRegion::SetState(Slot slot, ItemState state) {
  uint64_t word;
  std::memcpy(&word, At(LocationOf(slot)), sizeof(word));
  word = PackVersion(VersionOf(word), state);
  std::memcpy(At(LocationOf(slot)), &word, sizeof(word));
}

void TestRegion::Seal(uint32_t shard, BucketIndex bucket, RegionOffset overflow, bool new_version) {
  BucketHeader& header = HeaderAt(ToBytes(overflow) == 0 ? BucketOffset(shard, bucket) : overflow);
  if (new_version) ++header.version;
  header.checksum =
      HeaderChecksum(header, HeaderSeed(geometry_.incarnation, shard, bucket, overflow));
}

RegionOffset TestRegion::AddOverflow(uint32_t shard, BucketIndex bucket) {
  const RegionOffset fresh = HeapRoom(kBucketHeaderBytes);
  HeaderAt(fresh) = {};
  Seal(shard, bucket, fresh);
  RegionOffset last{0};
  BucketHeader* header = &HeaderAt(BucketOffset(shard, bucket));
  while (ToBytes(OverflowOf(header->link)) != 0) {
    last = OverflowOf(header->link);
    header = &HeaderAt(last);
  }
  // A filter with every bit set keeps nobody from looking.
  header->link = PackLink(DepthOf(header->link), fresh, ToBytes(last) == 0 ? 0xffff : 0);
  Seal(shard, bucket, last);
  if (ToBytes(last) != 0) Seal(shard, bucket, RegionOffset{0});
  return fresh;
}

void TestRegion::AddSlot(uint32_t shard, BucketIndex bucket, Slot slot) {
  RegionOffset at{0};
  for (;;) {
    BucketHeader& header = HeaderAt(ToBytes(at) == 0 ? BucketOffset(shard, bucket) : at);
    for (Slot& place : header.slots) {
      if (place != kEmptySlot) continue;
      place = slot;
      Seal(shard, bucket, at);
      if (ToBytes(at) != 0) Seal(shard, bucket, RegionOffset{0});
      return;
    }
    at = OverflowOf(header.link);
    if (ToBytes(at) == 0) at = AddOverflow(shard, bucket);
  }
}

bool TestRegion::RemoveSlot(uint32_t shard, BucketIndex bucket, Slot slot) {
  RegionOffset at{0};
  do {
    BucketHeader& header = HeaderAt(ToBytes(at) == 0 ? BucketOffset(shard, bucket) : at);
    for (Slot& place : header.slots) {
      if (place != slot) continue;
      place = kEmptySlot;
      if (ToBytes(at) != 0) Seal(shard, bucket, RegionOffset{0});
      Seal(shard, bucket, at);
      return true;
    }
    at = OverflowOf(header.link);
  } while (ToBytes(at) != 0);
  return false;
}

std::vector<Slot> TestRegion::SlotsOf(uint32_t shard, BucketIndex bucket) {
  std::vector<Slot> slots;
  RegionOffset at = BucketOffset(shard, bucket);
  do {
    const BucketHeader& header = HeaderAt(at);
    for (const Slot slot : header.slots) {
      if (slot != kEmptySlot) slots.push_back(slot);
    }
    at = OverflowOf(header.link);
  } while (ToBytes(at) != 0);
  return slots;
}

Slot TestRegion::Put(const TestItem& item, bool local) {
  const uint32_t shard = ShardOfKey(item.key);
  const BucketIndex bucket = BucketOfKey(item.key);
  const uint64_t bytes =
      ItemBytes(item.flags, item.key.size(), item.value.size()) + item.extra_bytes;
  const Slot slot = WriteItem(local ? LocalRoom(shard, bucket, bytes) : HeapRoom(bytes), item);
  AddSlot(shard, bucket, slot);
  return slot;
}

Slot TestRegion::Replace(Slot old, const TestItem& item) {
  TestItem writing = item;
  writing.state = ItemState::kWriting;
  const Slot slot =
      WriteItem(HeapRoom(ItemBytes(item.flags, item.key.size(), item.value.size())), writing);
  SetState(old, ItemState::kDead);
  const uint32_t shard = ShardOfKey(item.key);
  const BucketIndex bucket = BucketOfKey(item.key);
  RegionOffset at{0};
  do {
    BucketHeader& header = HeaderAt(ToBytes(at) == 0 ? BucketOffset(shard, bucket) : at);
    for (Slot& place : header.slots) {
      if (place != old) continue;
      place = slot;
      Seal(shard, bucket, at);
      if (ToBytes(at) != 0) Seal(shard, bucket, RegionOffset{0});
      SetState(slot, ItemState::kLive);
      Free(old);
      return slot;
    }
    at = OverflowOf(header.link);
  } while (ToBytes(at) != 0);
  KVD_CHECK(false);
  return kEmptySlot;
}

void TestRegion::Delete(std::string_view key, Slot slot) {
  SetState(slot, ItemState::kDead);
  KVD_CHECK(RemoveSlot(ShardOfKey(key), BucketOfKey(key), slot));
  Free(slot);
}

BucketIndex TestRegion::Split(uint32_t shard, bool publish_count) {
  const uint32_t made = shards_[shard].bucket_count;
  const uint32_t depth = static_cast<uint32_t>(std::bit_width(made));
  const BucketIndex old{made & ~(1u << (depth - 1))};
  MakeBucket(shard, BucketIndex{made}, depth);
  const std::vector<Slot> slots = SlotsOf(shard, old);
  std::vector<Slot> stay;
  for (const Slot slot : slots) {
    const uint64_t hash = Hash(KeyAt(LocationOf(slot)));
    if (LowBits(hash, depth) == made) {
      AddSlot(shard, BucketIndex{made}, slot);
    } else {
      stay.push_back(slot);
    }
  }
  shards_[shard].bucket_count = made + 1;
  if (publish_count) PublishCount(shard);
  // The new bucket is complete: now the old one is emptied of what went there. Its first header
  // goes first.
  BucketHeader& old_header = HeaderAt(BucketOffset(shard, old));
  old_header.link =
      PackLink(depth, OverflowOf(old_header.link), ChainFilterOf(old_header.link));
  Seal(shard, old, RegionOffset{0});
  for (const Slot slot : slots) KVD_CHECK(RemoveSlot(shard, old, slot));
  for (const Slot slot : stay) AddSlot(shard, old, slot);
  return BucketIndex{made};
}

void TestRegion::Merge(uint32_t shard) {
  const BucketIndex child{--shards_[shard].bucket_count};
  const uint32_t depth = MergedDepth(child);
  const BucketIndex parent{ToNumber(child) & ((1u << depth) - 1)};
  BucketHeader& parent_header = HeaderAt(BucketOffset(shard, parent));
  parent_header.link =
      PackLink(depth, OverflowOf(parent_header.link), ChainFilterOf(parent_header.link));
  Seal(shard, parent, RegionOffset{0});
  for (const Slot slot : SlotsOf(shard, child)) AddSlot(shard, parent, slot);
  PublishCount(shard);
  BucketHeader& header = HeaderAt(BucketOffset(shard, child));
  std::fill(std::begin(header.slots), std::end(header.slots), kEmptySlot);
  header.link = PackLink(depth, RegionOffset{0});
  Seal(shard, child, RegionOffset{0});
}

RegionOffset TestRegion::GiveBackSegment(uint32_t shard) {
  const BucketIndex next{shards_[shard].bucket_count};
  KVD_CHECK(ToNumber(next) % geometry_.buckets_per_segment() == 0);
  const RegionOffset segment = BucketOffset(shard, next);
  SetDirectoryEntry(geometry_.DirectoryIndex(shard, next), 0);
  return segment;
}

void TestRegion::PublishCount(uint32_t shard) {
  const uint64_t word = PackCheckedWord(CheckedWordKind::kBucketCount, shard, geometry_.incarnation,
                                        shards_[shard].bucket_count);
  std::memcpy(At(kBucketCountsOffset + shard * sizeof(word)), &word, sizeof(word));
}

void TestRegion::SetDirectoryEntry(uint64_t index, uint32_t segment) {
  segments_[index] = segment;
  const uint64_t word = segment == 0 ? 0
                                     : PackCheckedWord(CheckedWordKind::kDirectoryEntry, index,
                                                       geometry_.incarnation, segment);
  std::memcpy(At(RegionOffset{geometry_.directory_offset + index * sizeof(word)}), &word,
              sizeof(word));
}

void TestRegion::SetLifeline(uint32_t word) {
  std::memcpy(At(kLifelineOffset), &word, sizeof(word));
}

}  // namespace kvd::test
