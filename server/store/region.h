// The one mapping that holds everything a client may read, and the allocator of its pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/superblock.h"
#include "common/protocol/geometry.h"

namespace kvd {

enum class HugepagePolicy { kPrefer, kRequire, kOff };
enum class PageKind { kHuge1GiB, kHuge2MiB, kTransparent, kSmall };

struct RegionOptions {
  uint64_t memory_bytes = uint64_t{64} << 20;  // rounded down to whole pages of the kind that is used
  HugepagePolicy hugepages = HugepagePolicy::kPrefer;
  uint32_t bucket_bytes = kBucketBytesDefault;
  uint32_t shard_count = 1;
  uint32_t prefault_threads = 0;  // 0: one per core
  uint64_t incarnation = 0;       // 0: random
  // Called from Create's thread while pages are being touched, at least once with done == total.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress;
};

class Region {
 public:
  // Maps, prefaults, writes the superblock and seals the descriptor so that whoever receives it can only read.
  // InvalidArgument: memory below the minimum (which it names) or more than the machine has; ResourceExhausted: pages
  // that could not be had, with counts and the remedy. Blocks for as long as the kernel takes to give the pages.
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
  int fd() const;
  PageKind page_kind() const;
  // Why page_kind() is not what was preferred; empty if it is. One line for the log.
  const std::string& page_fallback() const;

  // Marks the region as served: starts the thread that the lifeline word names. Call once, when everything is ready to
  // be read; the mark goes when the region is destroyed or the process ends, however it ends.
  absl::Status StartLifeline();

  // The page allocator: whole 4 KiB pages, coalesced when freed. Index segments grow from the low end, everything else
  // from the high end, so that they do not fragment each other. nullopt: no such run is free. Thread-safe; short lock.
  std::optional<RegionOffset> AllocatePages(uint64_t bytes);
  void FreePages(RegionOffset offset, uint64_t bytes);
  std::optional<RegionOffset> AllocateIndexSegment();  // kSegmentBytes, aligned to it
  uint64_t free_bytes() const;

 private:
  // (the store's author completes this)
  Geometry geometry_;
  std::byte* base_ = nullptr;
};

}  // namespace kvd
