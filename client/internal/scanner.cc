#include "client/internal/scanner.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/layout/checked_word.h"
#include "common/layout/superblock.h"

namespace kvd {
namespace {

using Into = GetMachine::Into;

// With back-off this is some seconds: a bucket that does not come to rest in that time is broken, not busy.
constexpr int kPassesMax = 100000;

}  // namespace

// False: not set, or torn.
absl::StatusOr<bool> Scanner::ReadCheckedWord(CheckedWordKind kind, uint64_t place, RegionOffset at, uint32_t& value) {
  KVD_ASSIGN_OR_RETURN(const auto bytes, reader_.Read({at, sizeof(uint64_t), Into::kScratch}, deadline_ns_));
  uint64_t word;
  std::memcpy(&word, bytes.data(), sizeof(word));
  const auto content = UnpackCheckedWord(kind, place, map_.geometry().incarnation, word);
  if (content.has_value()) value = *content;
  return content.has_value();
}

absl::Status Scanner::LearnBucketCount(uint32_t shard) {
  for (int pass = 1;; ++pass) {
    uint32_t count = 0;
    KVD_ASSIGN_OR_RETURN(const bool set, ReadCheckedWord(CheckedWordKind::kBucketCount, shard,
                                                         kBucketCountsOffset + shard * sizeof(uint64_t), count));
    if (set) {
      map_.LearnBucketCount(shard, count);
      return absl::OkStatus();
    }
    if (pass == kPassesMax) return absl::DataLossError(absl::StrCat("the bucket count of shard ", shard, " is broken"));
    KVD_RETURN_IF_ERROR(RegionReader::BackOff(pass, deadline_ns_));
  }
}

// False: the bucket has no place, at this moment.
absl::StatusOr<bool> Scanner::LearnSegmentOf(uint32_t shard, BucketIndex bucket) {
  const Geometry& geometry = map_.geometry();
  if (ToBytes(map_.BucketOffset(shard, bucket)) != 0) return true;
  const uint64_t index = geometry.DirectoryIndex(shard, bucket);
  if (index >= geometry.directory_entries) return absl::DataLossError("a bucket beyond the directory");
  uint32_t segment = 0;
  KVD_ASSIGN_OR_RETURN(const bool set,
                       ReadCheckedWord(CheckedWordKind::kDirectoryEntry, index,
                                       RegionOffset{geometry.directory_offset + index * sizeof(uint64_t)}, segment));
  if (set) map_.LearnSegment(index, segment);
  return ToBytes(map_.BucketOffset(shard, bucket)) != 0;
}

absl::StatusOr<bool> Scanner::ReadHeader(const Stretch& stretch, RegionOffset at, RegionOffset overflow,
                                         BucketHeader& header) {
  const Geometry& geometry = map_.geometry();
  if (!geometry.Contains(at, kBucketHeaderBytes)) return false;
  KVD_ASSIGN_OR_RETURN(const auto bytes, reader_.Read({at, kBucketHeaderBytes, Into::kScratch}, deadline_ns_));
  std::memcpy(&header, bytes.data(), sizeof(header));
  return HeaderChecksum(header, HeaderSeed(geometry.incarnation, stretch.shard, stretch.bucket, overflow)) ==
         header.checksum;
}

absl::StatusOr<Scanner::Pass> Scanner::VisitSlots(const Stretch& stretch, const Slot (&slots)[kSlotsPerHeader],
                                                  const Visit& visit) {
  const Geometry& geometry = map_.geometry();
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
    const ItemExpectation any_key{geometry.incarnation, LocationOf(slot), {}, 0, map_.server_clock()};
    const ItemVerdict verdict = JudgeItem(bytes, any_key, item);
    if (verdict == ItemVerdict::kExpired) continue;
    if (verdict != ItemVerdict::kCurrent) {
      pass = Pass::kAgain;
      continue;
    }
    const uint64_t hash = HashKey(item.key, geometry.hash_seed());
    // Another key's, whose item lies now where the slot's lay.
    if (SlotTag(hash) != TagOf(slot) || ShardOf(hash, geometry.shard_count) != stretch.shard ||
        LowBits(hash, stretch.depth) != ToNumber(stretch.bucket)) {
      pass = Pass::kAgain;
      continue;
    }
    if (WalkOrder(hash) < stretch.from || !met_.insert(item.version).second) continue;
    KVD_RETURN_IF_ERROR(reader_.CheckAlive());
    const Answer answer = visit(item);
    if (answer == Answer::kNext) ++visited_;
    if (answer == Answer::kStop) return Pass::kStopped;
  }
  return pass;
}

absl::StatusOr<Scanner::Pass> Scanner::VisitBucket(const Stretch& stretch, RegionOffset offset,
                                                   const BucketHeader& first, const Visit& visit) {
  BucketHeader header = first;
  Pass pass = Pass::kDone;
  // Keys chosen to collide, or a region too full to grow, make chains of any length; only one with more headers than
  // the region has room for goes round in a circle.
  const uint64_t chain_max = map_.geometry().region_bytes / kBucketHeaderBytes;
  for (uint64_t chain = 0;; ++chain) {
    KVD_ASSIGN_OR_RETURN(const Pass slots, VisitSlots(stretch, header.slots, visit));
    if (slots == Pass::kStopped) return slots;
    pass = std::max(pass, slots);
    const RegionOffset next = OverflowOf(header.link);
    if (ToBytes(next) == 0) break;
    if (chain == chain_max) {
      return absl::DataLossError(
          absl::StrCat("bucket ", ToNumber(stretch.bucket), " of shard ", stretch.shard, " has an endless chain"));
    }
    KVD_ASSIGN_OR_RETURN(const bool whole, ReadHeader(stretch, next, next, header));
    if (!whole) return Pass::kAgain;
  }
  if (pass == Pass::kAgain) return pass;
  // Unchanged, so that what the slots led to was in its place all the time.
  KVD_ASSIGN_OR_RETURN(const bool whole, ReadHeader(stretch, offset, RegionOffset{0}, header));
  return whole && std::memcmp(&header, &first, sizeof(first)) == 0 ? Pass::kDone : Pass::kAgain;
}

// The bucket's depth has led to another one. The count says how far, but may be behind a split.
absl::Status Scanner::FollowTable(const Stretch& stretch, BucketIndex lives_in) {
  const Geometry& geometry = map_.geometry();
  if (geometry.DirectoryIndex(stretch.shard, lives_in) >= geometry.directory_entries) {
    return absl::DataLossError(
        absl::StrCat("bucket ", ToNumber(stretch.bucket), " of shard ", stretch.shard, " leads beyond the directory"));
  }
  const bool up = ToNumber(lives_in) > ToNumber(stretch.bucket);
  if (!up) map_.ForgetSegment(geometry.DirectoryIndex(stretch.shard, stretch.bucket));
  KVD_RETURN_IF_ERROR(LearnBucketCount(stretch.shard));
  if (up && map_.bucket_count(stretch.shard) <= ToNumber(lives_in)) {
    map_.LearnBucketCount(stretch.shard, ToNumber(lives_in) + 1);
  }
  return absl::OkStatus();
}

// One attempt to visit the bucket at stretch.from, of which it says afterwards where it ends.
absl::StatusOr<Scanner::Pass> Scanner::TryBucket(Stretch& stretch, const Visit& visit) {
  const uint64_t hash = HashAtWalkOrder(stretch.from);
  stretch.bucket = BucketOf(hash, map_.bucket_count(stretch.shard));
  KVD_ASSIGN_OR_RETURN(const bool placed, LearnSegmentOf(stretch.shard, stretch.bucket));
  BucketHeader first;
  bool whole = false;
  const RegionOffset offset = map_.BucketOffset(stretch.shard, stretch.bucket);
  if (placed) {
    KVD_ASSIGN_OR_RETURN(whole, ReadHeader(stretch, offset, RegionOffset{0}, first));
  }
  if (!whole) {
    // Torn; or there is nothing of that bucket any more.
    map_.ForgetSegment(map_.geometry().DirectoryIndex(stretch.shard, stretch.bucket));
    KVD_RETURN_IF_ERROR(LearnBucketCount(stretch.shard));
    return Pass::kAgain;
  }
  stretch.depth = DepthOf(first.link);
  const BucketIndex lives_in = FollowDepth(hash, stretch.bucket, stretch.depth);
  if (lives_in != stretch.bucket) {
    KVD_RETURN_IF_ERROR(FollowTable(stretch, lives_in));
    return Pass::kAgain;
  }
  if (stretch.depth > 32) {
    return absl::DataLossError(absl::StrCat("bucket ", ToNumber(stretch.bucket), " of shard ", stretch.shard,
                                            " claims a depth of ", stretch.depth));
  }
  stretch.end = WalkEndOf(stretch.bucket, stretch.depth);
  met_until_ = std::max(met_until_, stretch.end);
  return VisitBucket(stretch, offset, first, visit);
}

absl::StatusOr<bool> Scanner::ScanStretch(Stretch& stretch, const Visit& visit) {
  if (stretch.from >= met_until_) met_.clear();
  for (int pass = 1; pass <= kPassesMax; ++pass) {
    KVD_ASSIGN_OR_RETURN(const Pass result, TryBucket(stretch, visit));
    if (result != Pass::kAgain) return result == Pass::kDone;
    KVD_RETURN_IF_ERROR(RegionReader::BackOff(pass, deadline_ns_));
    KVD_RETURN_IF_ERROR(reader_.CheckAlive());
  }
  return absl::DataLossError(absl::StrCat("bucket ", ToNumber(stretch.bucket), " of shard ", stretch.shard,
                                          " never came to rest: damaged memory?"));
}

// False: stopped before the shard's end.
absl::StatusOr<bool> Scanner::ScanShard(ScanPosition& position, uint64_t count, const Visit& visit) {
  met_.clear();
  met_until_ = 0;
  KVD_RETURN_IF_ERROR(LearnBucketCount(position.shard));
  for (;;) {
    if (count != 0 && visited_ >= count) return false;
    Stretch stretch{.shard = position.shard, .from = position.order};
    KVD_ASSIGN_OR_RETURN(const bool go_on, ScanStretch(stretch, visit));
    if (!go_on) return false;
    if (stretch.end >= kWalkEnd) return true;
    position.order = static_cast<uint32_t>(stretch.end);
  }
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
                      absl::Hex(position.order));
}

absl::StatusOr<ScanPosition> ParseCursor(std::string_view cursor, uint64_t incarnation) {
  ScanPosition position;
  if (cursor.empty()) return position;
  const std::vector<std::string> parts = absl::StrSplit(ToAbsl(cursor), '-');
  std::vector<uint64_t> numbers;
  for (const std::string& part : parts) {
    uint64_t number = 0;
    if (absl::SimpleHexAtoi(part, &number)) numbers.push_back(number);
  }
  if (numbers.size() != parts.size() || numbers.size() < 3 || numbers.size() > 4 || numbers[1] > UINT32_MAX ||
      numbers[2] > UINT32_MAX || numbers.back() > UINT32_MAX) {
    return absl::InvalidArgumentError(absl::StrCat("\"", ToAbsl(cursor), "\" is no cursor of a scan"));
  }
  if (numbers.size() == 4) {
    return absl::FailedPreconditionError(
        "the cursor is of an older client, which counted buckets: begin the scan anew");
  }
  if (numbers[0] != incarnation) {
    return absl::FailedPreconditionError("the cursor is of an earlier run of kvd: begin the scan anew");
  }
  position.shard = static_cast<uint32_t>(numbers[1]);
  position.order = static_cast<uint32_t>(numbers[2]);
  return position;
}

}  // namespace kvd
