// Which 4 KiB pages of the region are free. All of its data is private memory: the region itself is
// never touched.
//
// Best fit: the smallest free run that is long enough, of equal ones that at the highest address,
// cut from its high end; freed runs coalesce with their neighbours at once. Index segments come
// from the low end. Best fit with immediate coalescing keeps external fragmentation at a few
// percent for real allocation traces (Johnstone and Wilson, "The Memory Fragmentation Problem:
// Solved?", ISMM 1998); no allocator that cannot move has a good worst case (Robson 1974).
//
// Where several shards allocate, each has a zone, a part of the memory that it is given first; it
// gets other memory, if it wants it, only where that has no run that is long enough. So what one
// shard frees lies side by side, and it can make room for a long run by itself. Free runs know no
// borders.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/layout/units.h"

namespace kvd {

// Thread-safe. Every operation takes time logarithmic in the number of free runs, and proportional
// to the number of zones, under one short lock.
class PageAllocator {
 public:
  // Manages [begin, end), both multiples of kPageBytes, in zones of about the same length; all of
  // it is free.
  PageAllocator(RegionOffset begin, RegionOffset end, uint32_t zones = 1);

  // Where from: a zone, and the others unless `only`.
  struct From {
    uint32_t zone = 0;
    bool only = false;
  };

  // `bytes` (at least 1) rounded up to whole pages, page-aligned. nullopt: no run of free pages is
  // that long.
  std::optional<RegionOffset> Allocate(uint64_t bytes, From from);
  std::optional<RegionOffset> Allocate(uint64_t bytes) { return Allocate(bytes, From()); }

  // kSegmentBytes, aligned to it, at the lowest address of the zone where they are free, or else of
  // all zones.
  std::optional<RegionOffset> AllocateSegment(From from);
  std::optional<RegionOffset> AllocateSegment() { return AllocateSegment(From()); }
  // The same from that zone alone, and nothing of [begin, end).
  std::optional<RegionOffset> AllocateSegmentOutside(RegionOffset begin, RegionOffset end,
                                                     uint32_t zone);

  // Gives back what was allocated, or any whole pages of it. `bytes` is rounded up to whole pages.
  void Free(RegionOffset offset, uint64_t bytes);

  // Where a zone begins, and where it ends.
  RegionOffset ZoneBegin(uint32_t zone) const { return RegionOffset{zones_[zone].begin}; }
  RegionOffset ZoneEnd(uint32_t zone) const { return RegionOffset{zones_[zone].end}; }
  // Whether the page at `at` is of that zone.
  bool IsIn(RegionOffset at, uint32_t zone) const {
    return at >= ZoneBegin(zone) && at < ZoneEnd(zone);
  }

  uint64_t free_bytes() const { return free_bytes_.load(std::memory_order_relaxed); }
  uint64_t longest_free_run_bytes() const;
  // How many bytes from the page at `at` on are free in one run, and how many up to that page.
  uint64_t FreeBytesFrom(RegionOffset at) const;
  uint64_t FreeBytesBefore(RegionOffset at) const;

  // Internal names the first free run that overlaps, is not coalesced, or is missing in one of the
  // orders.
  absl::Status CheckInvariants() const;

 private:
  using Run = std::pair<uint64_t, uint64_t>;  // begin, bytes
  // bytes, -begin: of equal runs the highest comes first.
  using RunsByBytes = std::set<std::pair<uint64_t, uint64_t>>;

  // What of the free runs lies within it.
  struct Zone {
    uint64_t begin = 0;
    uint64_t end = 0;
    RunsByBytes by_bytes;
    std::set<uint64_t> with_segment;  // begins of the pieces that hold an aligned segment
  };

  void Insert(Run run);
  void Erase(Run run);
  template <typename Visit>
  void ForEachPiece(Run run, Visit visit);
  std::optional<RegionOffset> AllocateFrom(const RunsByBytes& runs, uint64_t bytes);
  std::optional<RegionOffset> AllocateSegmentFrom(const Zone& zone);
  // Part of a free run.
  void Take(uint64_t begin, uint64_t bytes);

  const uint64_t begin_;
  const uint64_t end_;
  mutable std::mutex mutex_;
  std::map<uint64_t, uint64_t> by_begin_;  // begin -> bytes
  RunsByBytes by_bytes_;
  std::vector<Zone> zones_;              // side by side, with borders between segments
  std::atomic<uint64_t> free_bytes_{0};  // written under the lock; relaxed, a statistic
};

}  // namespace kvd
