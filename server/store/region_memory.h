// The memory of the region: one descriptor, mapped once writable by kvd, in the largest pages that
// can be had.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mapped_memory.h"
#include "common/base/unique_fd.h"
#include "server/store/region_options.h"

namespace kvd {

struct RegionMemory {
  UniqueFd fd;
  MappedMemory mapping;
  PageKind page_kind = PageKind::kSmall;
  // Why the pages are not what was preferred, in at most 60 characters; empty if they are.
  std::string fallback;
  // What became of options.numa_node, if it is not as wished; empty if it is.
  std::string placement;

  // Maps and prefaults. Errors as Region::Create has them. `minimum_bytes` is what must be left
  // after rounding down to whole pages; larger pages than that allows are not tried.
  static absl::StatusOr<RegionMemory> Create(const RegionOptions& options, uint64_t minimum_bytes);

  // Forbids, for good and for everybody who gets the descriptor, to write through it, to map it
  // writable and to change its size. The mapping that exists stays writable.
  absl::Status Seal();
};

// ResourceExhausted: the kernel does not have enough hugepages free for that much memory, or not on
// `node` (-1: any); names counts and remedy, as the error of a Create that requires them does.
absl::Status CheckHugepages(uint64_t memory_bytes, int node = -1);

}  // namespace kvd
