// Walks every bucket of a region one-sidedly.
#pragma once

#include <cstdint>
#include <functional>
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
class Scanner {
 public:
  using Visit = std::function<bool(const ItemView& item)>;  // false: stop

  Scanner(RegionMap& map, RegionReader& reader, int64_t deadline_ns)
      : map_(map), reader_(reader), deadline_ns_(deadline_ns) {}

  // Ok: all visited, or `visit` stopped it. DeadlineExceeded; DataLoss if a bucket never came to rest; errors of Read.
  absl::Status Run(const Visit& visit);

 private:
  enum class Pass : uint8_t { kDone, kAgain, kStopped };

  absl::StatusOr<uint32_t> BucketCount(uint32_t shard);
  absl::Status LearnSegmentOf(uint32_t shard, BucketIndex bucket);
  absl::StatusOr<bool> ScanBucket(uint32_t shard, BucketIndex bucket, const Visit& visit);
  absl::StatusOr<Pass> TryBucket(uint32_t shard, BucketIndex bucket, const Visit& visit);
  absl::StatusOr<Pass> VisitSlots(const Slot (&slots)[kSlotsPerHeader], const Visit& visit);

  RegionMap& map_;
  RegionReader& reader_;
  const int64_t deadline_ns_;
  uint32_t split_off_ = 0;              // highest bucket of this shard of which a bucket's depth has told
  std::unordered_set<uint64_t> met_;  // versions visited in this bucket: unique in a shard
};

}  // namespace kvd
