// What the operator decides about the region.
#pragma once

#include <cstdint>
#include <functional>

#include "common/layout/units.h"

namespace kvd {

enum class HugepagePolicy { kPrefer, kRequire, kOff };
enum class PageKind { kHuge1GiB, kHuge2MiB, kTransparent, kSmall };

struct RegionOptions {
  uint64_t memory_bytes = uint64_t{64}
                          << 20;  // rounded down to whole pages of the kind that is used
  HugepagePolicy hugepages = HugepagePolicy::kPrefer;
  uint32_t bucket_bytes = kBucketBytesDefault;
  uint32_t shard_count = 1;
  uint32_t prefault_threads = 0;  // 0: one per core
  uint64_t incarnation = 0;       // 0: random
  int numa_node = -1;             // that its memory is to be of; -1: wherever the kernel likes
  // Create fails if that node does not have so much; otherwise the rest comes from elsewhere.
  bool numa_strict = false;
  // Called from Create's thread while pages are being touched, at least once with done == total.
  // Begins again from less when one kind of page ran out and the next is tried.
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)> progress = {};
  // Whether Create is to give up, as Cancelled: asked all the time by any of its threads while they
  // touch pages. May be null.
  std::function<bool()> cancelled = {};
};

}  // namespace kvd
