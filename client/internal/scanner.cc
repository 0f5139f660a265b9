#include "client/internal/scanner.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/string_view.h"
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
    const ItemExpectation any_key{map_.geometry().incarnation, LocationOf(slot), {}, 0, map_.server_clock()};
    const ItemVerdict verdict = JudgeItem(bytes, any_key, item);
    if (verdict == ItemVerdict::kExpired) continue;
    if (verdict != ItemVerdict::kCurrent) {
      pass = Pass::kAgain;
      continue;
    }
    if (!met_.insert(item.version).second) continue;
    KVD_RETURN_IF_ERROR(reader_.CheckAlive());
    const Answer answer = visit(item);
    if (answer == Answer::kNext) ++visited_;
    if (answer == Answer::kStop) return Pass::kStopped;
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

// False: stopped before the shard's end.
absl::StatusOr<bool> Scanner::ScanShard(ScanPosition& position, uint64_t count, const Visit& visit) {
  const uint32_t shard = position.shard;
  split_off_ = position.split_off;
  KVD_ASSIGN_OR_RETURN(uint32_t buckets, BucketCount(shard));
  for (;;) {
    if (position.bucket >= buckets) {
      KVD_ASSIGN_OR_RETURN(const uint32_t grown, BucketCount(shard));
      buckets = std::max({buckets, grown, split_off_ + 1});
      if (position.bucket >= buckets) break;
    }
    if (count != 0 && visited_ >= count) return false;
    KVD_RETURN_IF_ERROR(LearnSegmentOf(shard, BucketIndex{position.bucket}));
    KVD_ASSIGN_OR_RETURN(const bool go_on, ScanBucket(shard, BucketIndex{position.bucket}, visit));
    position.split_off = split_off_;
    if (!go_on) return false;
    ++position.bucket;
  }
  map_.LearnBucketCount(shard, buckets);
  return true;
}

absl::Status Scanner::Run(ScanPosition& position, uint64_t count, const Visit& visit) {
  visited_ = 0;
  for (; position.shard < map_.geometry().shard_count; position = ScanPosition{.shard = position.shard + 1}) {
    KVD_ASSIGN_OR_RETURN(const bool done, ScanShard(position, count, visit));
    if (!done) return reader_.CheckAlive();
  }
  position.at_end = true;
  return reader_.CheckAlive();
}

std::string FormatCursor(const ScanPosition& position, uint64_t incarnation) {
  if (position.at_end) return {};
  return absl::StrCat(absl::Hex(incarnation, absl::kZeroPad16), "-", absl::Hex(position.shard), "-",
                      absl::Hex(position.bucket), "-", absl::Hex(position.split_off));
}

absl::StatusOr<ScanPosition> ParseCursor(std::string_view cursor, uint64_t incarnation) {
  ScanPosition position;
  if (cursor.empty()) return position;
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(cursor), '-');
  uint64_t of = 0;
  if (parts.size() != 4 || !absl::SimpleHexAtoi(parts[0], &of) || !absl::SimpleHexAtoi(parts[1], &position.shard) ||
      !absl::SimpleHexAtoi(parts[2], &position.bucket) || !absl::SimpleHexAtoi(parts[3], &position.split_off)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", ToAbsl(cursor), "\" is no cursor of a scan"));
  }
  if (of != incarnation) {
    return absl::FailedPreconditionError("the cursor is of an earlier run of kvd: begin the scan anew");
  }
  return position;
}

}  // namespace kvd
