// The one mapping that holds everything a client may read, and the allocator of its pages.
//
//   0            4 KiB       4 KiB + directory                                        end
//   +------------+-----------+-------------------------------+-----------------------+
//   | superblock | directory | bucket segments, from here up | heap, from here down  |
//   +------------+-----------+-------------------------------+-----------------------+
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/superblock.h"
#include "common/protocol/geometry.h"
#include "server/store/page_allocator.h"
#include "server/store/region_memory.h"
#include "server/store/region_options.h"

namespace kvd {

class LifelineThread;

class Region {
 public:
  // The least memory for that many shards: a segment of buckets for each, and room for a heap.
  static uint64_t MinimumBytes(uint32_t shard_count);

  // Maps, prefaults, writes the superblock and seals the descriptor so that whoever receives it can
  // only read. InvalidArgument: memory below the minimum (which it names) or more than the machine
  // has, or numbers of buckets or shards outside of their limits; ResourceExhausted: pages that
  // could not be had, with counts and the remedy. Blocks for as long as the kernel takes to give
  // the pages.
  static absl::StatusOr<std::unique_ptr<Region>> Create(const RegionOptions& options);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::byte* base() const { return base_; }
  uint64_t bytes() const { return geometry_.region_bytes; }
  const Geometry& geometry() const { return geometry_; }
  Superblock& superblock() const { return *reinterpret_cast<Superblock*>(base_); }
  std::byte* At(RegionOffset offset) const { return base_ + ToBytes(offset); }
  RegionOffset OffsetOf(const void* at) const {
    return RegionOffset{static_cast<uint64_t>(static_cast<const std::byte*>(at) - base_)};
  }

  // The sealed descriptor: mapping it writable or writing to it fails. Owned by the region.
  int fd() const { return memory_.fd.get(); }
  PageKind page_kind() const { return memory_.page_kind; }
  // Why page_kind() is not what was preferred, in at most 60 characters; empty if it is.
  const std::string& page_fallback() const { return memory_.fallback; }
  // What became of options.numa_node, if it is not as wished; empty if it is.
  const std::string& placement_note() const { return memory_.placement; }

  // Marks the region as served: starts the thread that the lifeline word names. Call once, when
  // everything is ready to be read; the mark goes when the region is destroyed or the process ends,
  // however it ends.
  absl::Status StartLifeline();

  // The page allocator: whole 4 KiB pages, coalesced when freed. Index segments grow from the low
  // end, everything else from the high end, so that they do not fragment each other, each shard's
  // in its own part of the region first. nullopt: no such run is free. Thread-safe; short lock.
  std::optional<RegionOffset> AllocatePages(uint64_t bytes) { return pages_.Allocate(bytes); }
  void FreePages(RegionOffset offset, uint64_t bytes) { pages_.Free(offset, bytes); }
  std::optional<RegionOffset> AllocateIndexSegment(PageAllocator::From from = {}) {
    return pages_.AllocateSegment(from);
  }  // aligned to its size
  uint64_t free_bytes() const { return pages_.free_bytes(); }
  PageAllocator& pages() { return pages_; }

 private:
  Region(RegionMemory memory, const Geometry& geometry);

  void WriteSuperblock();

  RegionMemory memory_;
  Geometry geometry_;
  std::byte* base_;
  PageAllocator pages_;
  std::unique_ptr<LifelineThread> lifeline_;  // goes first: it writes into the region
};

}  // namespace kvd
