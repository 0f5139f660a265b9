// Touching every page of a mapping before it is used, so that a shortage is an error and never a
// SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace kvd {

struct PrefaultOptions {
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  int fd = -1;              // of the mapping, which begins at its offset 0
  uint64_t page_bytes = 0;  // size of the pages that are mapped
  uint32_t threads = 0;     // 0: one per core
  std::function<void(uint64_t done_bytes, uint64_t total_bytes)>
      progress = {};  // called from Prefault's thread
  // Asked between pieces of 16 MiB, or of a page where that is more, by any of the threads; may be
  // null. True: Prefault ends.
  std::function<bool()> cancelled = {};
};

// Blocks until the kernel has given every page, written. What ErrnoStatus makes of the first
// failure: ResourceExhausted in substance, whatever the code; Cancelled if `cancelled` said so.
// Pages that were already given stay with the mapping.
absl::Status Prefault(const PrefaultOptions& options);

}  // namespace kvd
