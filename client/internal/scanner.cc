#include "client/internal/scanner.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/layout/checked_word.h"
#include "common/layout/superblock.h"

namespace kvd {
namespace {

using Into = GetMachine::Into;

// With back-off this is some seconds: a bucket that does not come to rest in that time is broken, not busy.
constexpr int kPassesMax = 100000;

}  // namespace

absl::StatusOr<uint32_t> Scanner::BucketCount(uint32_t shard) {
  const GetMachine::Read read{kBucketCountsOffset + shard * sizeof(uint64_t), sizeof(uint64_t), Into::kScratch};
  for (int pass = 1;; ++pass) {
    KVD_ASSIGN_OR_RETURN(const auto bytes, reader_.Read(read, deadline_ns_));
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    const auto count =
        UnpackCheckedWord(CheckedWordKind::kBucketCount, shard, map_.geometry().incarnation, word);
    if (count.has_value()) return *count;
    if (pass == kPassesMax) return absl::DataLossError(absl::StrCat("the bucket count of shard ", shard, " is broken"));
    KVD_RETURN_IF_ERROR(RegionReader::BackOff(pass, deadline_ns_));
  }
}

absl::Status Scanner::LearnSegmentOf(uint32_t shard, BucketIndex bucket) {
  const Geometry& geometry = map_.geometry();
  const uint64_t index = geometry.DirectoryIndex(shard, bucket);
  if (index >= geometry.directory_entries) return absl::DataLossError("a bucket beyond the directory");
  const GetMachine::Read read{RegionOffset{geometry.directory_offset + index * sizeof(uint64_t)}, sizeof(uint64_t),
                              Into::kScratch};
  for (int pass = 1; ToBytes(map_.BucketOffset(shard, bucket)) == 0; ++pass) {
    KVD_ASSIGN_OR_RETURN(const auto bytes, reader_.Read(read, deadline_ns_));
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    const auto segment = UnpackCheckedWord(CheckedWordKind::kDirectoryEntry, index, geometry.incarnation, word);
    if (segment.has_value()) map_.LearnSegment(index, *segment);
    if (pass == kPassesMax) return absl::DataLossError(absl::StrCat("directory entry ", index, " is broken"));
    KVD_RETURN_IF_ERROR(RegionReader::BackOff(pass, deadline_ns_));
  }
  return absl::OkStatus();
}

absl::StatusOr<Scanner::Pass> Scanner::VisitSlots(const Slot (&slots)[kSlotsPerHeader], const Visit& visit) {
  Pass pass = Pass::kDone;
  for (const Slot slot : slots) {
    if (slot == kEmptySlot) continue;
    if (!map_.Plausible(slot)) {
      pass = Pass::kAgain;
      continue;
    }
    KVD_ASSIGN_OR_RETURN(const auto bytes,
                         reader_.Read({LocationOf(slot), ItemBytesOf(slot), Into::kItem}, deadline_ns_));
    ItemView item;
    const ItemExpectation any_key{map_.geometry().incarnation, LocationOf(slot), {}, 0};
    if (JudgeItem(bytes, any_key, item) != ItemVerdict::kCurrent) {
      pass = Pass::kAgain;
      continue;
    }
    if (!met_.insert(item.version).second) continue;
    KVD_RETURN_IF_ERROR(reader_.CheckAlive());
    if (!visit(item)) return Pass::kStopped;
  }
  return pass;
}

absl::StatusOr<Scanner::Pass> Scanner::TryBucket(uint32_t shard, BucketIndex bucket, const Visit& visit) {
  const Geometry& geometry = map_.geometry();
  const RegionOffset offset = map_.BucketOffset(shard, bucket);
  const auto read_header = [&](RegionOffset at, RegionOffset overflow, BucketHeader& header) -> absl::StatusOr<bool> {
    if (!geometry.Contains(at, kBucketHeaderBytes)) return false;
    KVD_ASSIGN_OR_RETURN(const auto bytes, reader_.Read({at, kBucketHeaderBytes, Into::kScratch}, deadline_ns_));
    std::memcpy(&header, bytes.data(), sizeof(header));
    return HeaderChecksum(header, HeaderSeed(geometry.incarnation, shard, bucket, overflow)) == header.checksum;
  };
  BucketHeader first;
  KVD_ASSIGN_OR_RETURN(bool whole, read_header(offset, RegionOffset{0}, first));
  if (!whole) return Pass::kAgain;
  // What was split off this bucket lies up to the bucket that its last split made, which the count word may not say yet.
  if (const uint32_t depth = DepthOf(first.link); depth >= 1 && depth <= 32) {
    split_off_ = std::max(split_off_, ToNumber(bucket) | 1u << (depth - 1));
  }
  BucketHeader header = first;
  Pass pass = Pass::kDone;
  bool chained = false;
  // Keys chosen to collide, or a region too full to grow, make chains of any length; only one with more headers than
  // the region has room for goes round in a circle.
  const uint64_t chain_max = geometry.region_bytes / kBucketHeaderBytes;
  for (uint64_t chain = 0;; ++chain) {
    KVD_ASSIGN_OR_RETURN(const Pass slots, VisitSlots(header.slots, visit));
    if (slots == Pass::kStopped) return slots;
    pass = std::max(pass, slots);
    const RegionOffset next = OverflowOf(header.link);
    if (ToBytes(next) == 0) break;
    if (chain == chain_max) {
      return absl::DataLossError(absl::StrCat("bucket ", ToNumber(bucket), " of shard ", shard, " has an endless chain"));
    }
    chained = true;
    KVD_ASSIGN_OR_RETURN(whole, read_header(next, next, header));
    if (!whole) return Pass::kAgain;
  }
  if (pass == Pass::kDone && chained) {
    KVD_ASSIGN_OR_RETURN(whole, read_header(offset, RegionOffset{0}, header));
    if (!whole || std::memcmp(&header, &first, sizeof(first)) != 0) return Pass::kAgain;
  }
  return pass;
}

absl::StatusOr<bool> Scanner::ScanBucket(uint32_t shard, BucketIndex bucket, const Visit& visit) {
  met_.clear();
  for (int pass = 1; pass <= kPassesMax; ++pass) {
    KVD_ASSIGN_OR_RETURN(const Pass result, TryBucket(shard, bucket, visit));
    if (result != Pass::kAgain) return result == Pass::kDone;
    KVD_RETURN_IF_ERROR(RegionReader::BackOff(pass, deadline_ns_));
    KVD_RETURN_IF_ERROR(reader_.CheckAlive());
  }
  return absl::DataLossError(
      absl::StrCat("bucket ", ToNumber(bucket), " of shard ", shard, " never came to rest: damaged memory?"));
}

absl::Status Scanner::Run(const Visit& visit) {
  for (uint32_t shard = 0; shard < map_.geometry().shard_count; ++shard) {
    KVD_ASSIGN_OR_RETURN(uint32_t count, BucketCount(shard));
    split_off_ = 0;
    for (uint32_t bucket = 0; bucket < count; ++bucket) {
      KVD_RETURN_IF_ERROR(LearnSegmentOf(shard, BucketIndex{bucket}));
      KVD_ASSIGN_OR_RETURN(const bool go_on, ScanBucket(shard, BucketIndex{bucket}, visit));
      if (!go_on) return absl::OkStatus();
      if (bucket + 1 == count) {
        KVD_ASSIGN_OR_RETURN(const uint32_t grown, BucketCount(shard));
        count = std::max({count, grown, split_off_ + 1});
      }
    }
    map_.LearnBucketCount(shard, count);
  }
  return reader_.CheckAlive();
}

}  // namespace kvd
