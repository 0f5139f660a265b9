// Ownership of one memory mapping.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"

namespace kvd {

// A mapping that is unmapped when its owner goes; descriptors are not kept. A moved-from object is
// empty. Not thread-safe in itself; the memory is shared as its user arranges it.
class MappedMemory {
 public:
  struct Options {
    // Descriptor to map, borrowed for the call; -1 maps anonymous memory.
    int fd = -1;
    // Offset in the file, a multiple of the page size (of the huge page, for hugetlbfs).
    int64_t offset_bytes = 0;
    // More than 0; for huge pages a multiple of their size, or unmapping would fail.
    size_t length_bytes = 0;
    int protection = PROT_READ;
    // As for mmap, without MAP_FIXED; MAP_ANONYMOUS is added where there is no descriptor.
    int flags = MAP_SHARED;
    // The base is a multiple of this: 0 (whatever mmap gives) or a power of two of at least a page.
    // With 2 MiB or 1 GiB the kernel can use transparent huge pages from the first byte on.
    size_t alignment_bytes = 0;
  };

  // Maps at once but touches no page, so a shortage of memory or huge pages may only show later.
  // Errors: INVALID_ARGUMENT for unusable options, else what ErrnoStatus makes of mmap's errno
  // (RESOURCE_EXHAUSTED for ENOMEM: no address space, too few huge pages). Nothing stays mapped.
  static absl::StatusOr<MappedMemory> Map(const Options& options);

  MappedMemory() = default;
  ~MappedMemory() { Reset(); }
  MappedMemory(MappedMemory&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)),
        length_bytes_(std::exchange(other.length_bytes_, 0)) {}
  MappedMemory& operator=(MappedMemory&& other) noexcept;

  // nullptr and 0 when empty.
  std::byte* base() const { return base_; }
  size_t length_bytes() const { return length_bytes_; }

  // Unmaps now; empty afterwards.
  void Reset();

 private:
  MappedMemory(std::byte* base, size_t length_bytes) : base_(base), length_bytes_(length_bytes) {}

  std::byte* base_ = nullptr;
  size_t length_bytes_ = 0;
};

}  // namespace kvd
