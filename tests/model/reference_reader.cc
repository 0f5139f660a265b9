#include "tests/model/reference_reader.h"

#include <thread>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/layout/checked_word.h"
#include "common/protocol/racy_copy.h"

namespace kvd::test {
namespace {

uint32_t Mask(uint32_t bits) { return static_cast<uint32_t>((uint64_t{1} << bits) - 1); }

}  // namespace

ReferenceReader::ReferenceReader(const std::byte* base) : base_(base) {
  RacyCopy(&identity_, base, sizeof(identity_));
  KVD_CHECK(identity_.magic == kSuperblockMagic && identity_.layout_version == kLayoutVersion);
  KVD_CHECK(Checksum64(&identity_, offsetof(RegionIdentity, checksum), kSuperblockMagic) ==
            identity_.checksum);
  KVD_CHECK(identity_.segment_bytes == kSegmentBytes && identity_.feature_bits == 0);
}

std::optional<RegionOffset> ReferenceReader::PlaceOf(uint32_t shard, uint32_t bucket) const {
  const uint32_t per_segment = identity_.segment_bytes / identity_.bucket_bytes;
  const uint64_t entry = uint64_t{bucket / per_segment} * identity_.shard_count + shard;
  if (entry >= identity_.directory_entries) return std::nullopt;
  const auto segment =
      UnpackCheckedWord(CheckedWordKind::kDirectoryEntry, entry, identity_.incarnation,
                        RacyLoad64(base_ + identity_.directory_offset + entry * 8));
  if (!segment) return std::nullopt;
  return RegionOffset{uint64_t{*segment} * kSegmentBytes +
                      uint64_t{bucket % per_segment} * identity_.bucket_bytes};
}

bool ReferenceReader::ReadHeader(RegionOffset at, uint64_t seed, BucketHeader& header) const {
  if (ToBytes(at) + kBucketHeaderBytes > identity_.region_bytes) return false;
  RacyCopy(&header, base_ + ToBytes(at), sizeof(header));
  LoadFence();
  return HeaderChecksum(header, seed) == header.checksum;
}

ItemVerdict ReferenceReader::ReadItem(Slot slot, std::string_view key, ItemView& item) {
  const uint64_t bytes = ItemBytesOf(slot);
  if (ToBytes(LocationOf(slot)) + bytes > identity_.region_bytes) return ItemVerdict::kTorn;
  buffer_.resize(bytes);
  RacyCopy(buffer_.data(), base_ + ToBytes(LocationOf(slot)), bytes);
  LoadFence();
  return JudgeItem(buffer_,
                   {.incarnation = identity_.incarnation,
                    .location = LocationOf(slot),
                    .key = key,
                    .held_version = 0},
                   item);
}

ReferenceReader::Outcome ReferenceReader::TryGet(std::string_view key, std::string& value,
                                                 uint64_t* version) {
  const uint64_t hash = HashKey(key, Mix64(identity_.incarnation ^ 0x68617368));
  const uint32_t shard = static_cast<uint32_t>((hash >> 48) * identity_.shard_count >> 16);
  const auto count = UnpackCheckedWord(CheckedWordKind::kBucketCount, shard, identity_.incarnation,
                                       RacyLoad64(base_ + 1024 + 8 * shard));
  if (!count) return Outcome::kRetry;
  LoadFence();
  uint32_t bits = 0;
  while ((uint64_t{1} << bits) < *count) ++bits;
  uint32_t bucket = static_cast<uint32_t>(hash) & Mask(bits);
  if (bucket >= *count) bucket = static_cast<uint32_t>(hash) & Mask(--bits);

  // Follows splits that the count did not tell of: the lowest bit that differs names the bucket
  // split off first.
  RegionOffset place;
  BucketHeader first;
  while (true) {
    const auto found = PlaceOf(shard, bucket);
    if (!found) return Outcome::kRetry;
    LoadFence();
    place = *found;
    const uint64_t seed =
        HeaderSeed(identity_.incarnation, shard, BucketIndex{bucket}, RegionOffset{0});
    if (!ReadHeader(place, seed, first)) return Outcome::kRetry;
    const uint32_t depth = DepthOf(first.link);
    if (depth < 32 && bucket >> depth != 0) return Outcome::kRetry;  // merged into another one
    while (bits < depth && (static_cast<uint32_t>(hash) & Mask(bits + 1)) == bucket) ++bits;
    if (bits >= depth) break;
    bucket = static_cast<uint32_t>(hash) & Mask(++bits);
  }

  const uint32_t tag = static_cast<uint32_t>(hash >> 36) & 0xfff;
  bool look_again = false;  // whether a miss needs the first header to be the same still
  BucketHeader header = first;
  for (RegionOffset at = place;;) {
    for (const Slot slot : header.slots) {
      if (slot == kEmptySlot || TagOf(slot) != tag) continue;
      ItemView item;
      const ItemVerdict verdict = ReadItem(slot, key, item);
      if (verdict == ItemVerdict::kCurrent) {
        value.assign(item.value);
        found_slot_ = slot;
        if (version != nullptr) *version = item.version;
        return Outcome::kFound;
      }
      if (verdict != ItemVerdict::kOtherKey) return Outcome::kRetry;
      look_again = true;
    }
    const bool may_be_there = at != place || (first.link >> 48 >> (tag & 15) & 1) != 0;
    at = OverflowOf(header.link);
    if (ToBytes(at) == 0 || !may_be_there) break;
    if (!ReadHeader(at, HeaderSeed(identity_.incarnation, shard, BucketIndex{bucket}, at),
                    header)) {
      return Outcome::kRetry;
    }
    if (header.version != first.version) look_again = true;
  }
  if (!look_again) return Outcome::kNotFound;
  const uint64_t seed =
      HeaderSeed(identity_.incarnation, shard, BucketIndex{bucket}, RegionOffset{0});
  return ReadHeader(place, seed, header) && header.version == first.version ? Outcome::kNotFound
                                                                            : Outcome::kRetry;
}

std::optional<std::string> ReferenceReader::GetRemembered(std::string_view key) {
  const auto remembered = remembered_.find(std::string(key));
  if (remembered != remembered_.end()) {
    ItemView item;
    if (ReadItem(remembered->second, key, item) == ItemVerdict::kCurrent) {
      ++remembered_hits_;
      return std::string(item.value);
    }
    remembered_.erase(remembered);
  }
  std::optional<std::string> value = Get(key);
  if (value) remembered_[std::string(key)] = found_slot_;
  return value;
}

std::optional<std::string> ReferenceReader::Get(std::string_view key) {
  std::string value;
  for (uint64_t attempt = 0;; ++attempt) {
    const Outcome outcome = TryGet(key, value);
    if (outcome == Outcome::kFound) return value;
    if (outcome == Outcome::kNotFound) return std::nullopt;
    ++retries_;
    KVD_CHECK(attempt < 100'000'000);
    if (attempt % 64 == 63) std::this_thread::yield();
  }
}

}  // namespace kvd::test
