// Which 4 KiB pages of the region are free. All of its data is private memory: the region itself is
// never touched.
//
// Best fit: the smallest free run that is long enough, of equal ones that at the highest address,
// cut from its high end; freed runs coalesce with their neighbours at once. Index segments come
// from the low end. Best fit with immediate coalescing keeps external fragmentation at a few
// percent for real allocation traces (Johnstone and Wilson, "The Memory Fragmentation Problem:
// Solved?", ISMM 1998); no allocator that cannot move has a good worst case (Robson 1974).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "common/layout/units.h"

namespace kvd {

// Thread-safe. Every operation takes time logarithmic in the number of free runs, under one short
// lock.
class PageAllocator {
 public:
  // Manages [begin, end), both multiples of kPageBytes; all of it is free.
  PageAllocator(RegionOffset begin, RegionOffset end);

  // `bytes` (at least 1) rounded up to whole pages, page-aligned. nullopt: no run of free pages is
  // that long.
  std::optional<RegionOffset> Allocate(uint64_t bytes);

  // kSegmentBytes, aligned to it, at the lowest address where they are free.
  std::optional<RegionOffset> AllocateSegment();

  // Gives back what was allocated, or any whole pages of it. `bytes` is rounded up to whole pages.
  void Free(RegionOffset offset, uint64_t bytes);

  uint64_t free_bytes() const { return free_bytes_.load(std::memory_order_relaxed); }
  uint64_t longest_free_run_bytes() const;
  // How many bytes from the page at `at` on are free in one run.
  uint64_t FreeBytesFrom(RegionOffset at) const;

  // Internal names the first free run that overlaps, is not coalesced, or is missing in one of the
  // orders.
  absl::Status CheckInvariants() const;

 private:
  using Run = std::pair<uint64_t, uint64_t>;  // begin, bytes

  void Insert(Run run);
  void Erase(Run run);

  const uint64_t begin_;
  const uint64_t end_;
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> by_begin_;  // begin -> bytes
  std::set<std::pair<uint64_t, uint64_t>>
      by_bytes_;                         // bytes, -begin: of equal runs the highest comes first
  std::set<uint64_t> with_segment_;      // begins of the runs that hold an aligned segment
  std::atomic<uint64_t> free_bytes_{0};  // written under the lock; relaxed, a statistic
};

}  // namespace kvd
