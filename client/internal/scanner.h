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

namespace kvd {

// Buckets are visited in the order of their numbers, each shard up to its newest. A split moves keys only to a bucket
// with a higher number, so a key that is present all the time is met at least once. A bucket is done when one header
// was read whole, every item of it (and of its chain) was read whole or met before, and its chain did not change
// meanwhile.
// How far a scan has come.
struct ScanPosition {
  uint32_t shard = 0;
  uint32_t bucket = 0;
  uint32_t split_off = 0;  // highest bucket of this shard of which a bucket's depth has told
  bool at_end = false;
};

// A position as text and back; empty: the beginning, and the end. InvalidArgument: no cursor. FailedPrecondition: one of another
// incarnation.
std::string FormatCursor(const ScanPosition& position, uint64_t incarnation);
absl::StatusOr<ScanPosition> ParseCursor(std::string_view cursor, uint64_t incarnation);

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

  absl::StatusOr<uint32_t> BucketCount(uint32_t shard);
  absl::Status LearnSegmentOf(uint32_t shard, BucketIndex bucket);
  absl::StatusOr<bool> ScanShard(ScanPosition& position, uint64_t count, const Visit& visit);
  absl::StatusOr<bool> ScanBucket(uint32_t shard, BucketIndex bucket, const Visit& visit);
  absl::StatusOr<Pass> TryBucket(uint32_t shard, BucketIndex bucket, const Visit& visit);
  absl::StatusOr<Pass> VisitSlots(const Slot (&slots)[kSlotsPerHeader], const Visit& visit);

  RegionMap& map_;
  RegionReader& reader_;
  const int64_t deadline_ns_;
  uint32_t split_off_ = 0;            // see ScanPosition
  uint64_t visited_ = 0;
  std::unordered_set<uint64_t> met_;  // versions visited in this bucket: unique in a shard
};

}  // namespace kvd
