// A client's read-only mapping of the region.
#pragma once

#include "absl/status/statusor.h"
#include "common/base/mapped_memory.h"
#include "common/base/unique_fd.h"
#include "common/layout/hello.h"

namespace kvd {

// Maps the region that came with the admission `welcome`. DataLoss: the descriptor is not memory of
// that size which cannot shrink, or the superblock in it is not the region that was announced;
// ResourceExhausted: no address space.
absl::StatusOr<MappedMemory> MapRegionWindow(const UniqueFd& fd, const Welcome& welcome);

}  // namespace kvd
