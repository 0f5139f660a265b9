// Walks every bucket of a region one-sidedly.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "client/internal/region_map.h"
#include "client/internal/region_reader.h"
#include "common/layout/checked_word.h"

namespace kvd {

// How far a scan has come: it has met every key of the shards before `shard`, and of `shard` those
// that come before `order` by WalkOrder (common/protocol/geometry.h).
struct ScanPosition {
  uint32_t shard = 0;
  uint32_t order = 0;
  bool at_end = false;
};

// A position as text and back; empty: the beginning, and the end. InvalidArgument: no cursor.
// FailedPrecondition: one of another incarnation, or of a client before protocol version 2, which
// counted buckets.
std::string FormatCursor(const ScanPosition& position, uint64_t incarnation);
absl::StatusOr<ScanPosition> ParseCursor(std::string_view cursor, uint64_t incarnation);

// Keys are visited in the order of WalkOrder, in which each bucket has an interval to itself: the
// bucket at the scan's position is read, and the position moves on to the end of its interval.
// Splits and merges move borders of intervals and no keys in that order, so a key that is present
// all the time is met at least once; of a bucket that has grown backwards by a merge only what is
// not behind yet is visited. A bucket is done when one header was read whole, every item of it (and
// of its chain) was read whole or met before, and the header was the same still after all that.
class Scanner {
 public:
  enum class Answer : uint8_t { kNext, kSkip, kStop };  // kSkip: was not what the caller looks for
  using Visit = std::function<Answer(const ItemView& item)>;

  Scanner(RegionMap& map, RegionReader& reader, int64_t deadline_ns)
      : map_(map), reader_(reader), deadline_ns_(deadline_ns) {}

  // From `position` on, which says afterwards where to go on. Ok: all visited, or `visit` stopped it, or a bucket is done and
  // `count` items (not 0) have been visited. DeadlineExceeded; DataLoss if a bucket never came to rest; errors of Read.
  absl::Status Run(ScanPosition& position, uint64_t count, const Visit& visit);

 private:
  enum class Pass : uint8_t { kDone, kAgain, kStopped };

  // What a pass over a bucket works with.
  struct Stretch {
    uint32_t shard = 0;
    uint32_t from = 0;  // in WalkOrder
    BucketIndex bucket{};
    uint32_t depth = 0;
    uint64_t end = 0;
  };

  absl::StatusOr<bool> ReadCheckedWord(CheckedWordKind kind, uint64_t place, RegionOffset at, uint32_t& value);
  absl::Status LearnBucketCount(uint32_t shard);
  absl::StatusOr<bool> LearnSegmentOf(uint32_t shard, BucketIndex bucket);
  absl::StatusOr<bool> ReadHeader(const Stretch& stretch, RegionOffset at, RegionOffset overflow, BucketHeader& header);
  absl::StatusOr<bool> ScanShard(ScanPosition& position, uint64_t count, const Visit& visit);
  absl::StatusOr<bool> ScanStretch(Stretch& stretch, const Visit& visit);
  absl::StatusOr<Pass> TryBucket(Stretch& stretch, const Visit& visit);
  absl::StatusOr<Pass> VisitBucket(const Stretch& stretch, RegionOffset offset, const BucketHeader& first,
                                   const Visit& visit);
  absl::StatusOr<Pass> VisitSlots(const Stretch& stretch, const Slot (&slots)[kSlotsPerHeader], const Visit& visit);
  absl::Status FollowTable(const Stretch& stretch, BucketIndex lives_in);

  RegionMap& map_;
  RegionReader& reader_;
  const int64_t deadline_ns_;
  uint64_t visited_ = 0;
  std::unordered_set<uint64_t> met_;  // versions visited in this bucket: unique in a shard
  uint64_t met_until_ = 0;            // in WalkOrder: nothing that was met lies beyond
};

}  // namespace kvd
