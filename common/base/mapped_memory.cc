#include "common/base/mapped_memory.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace kvd {
namespace {

size_t PageSizeBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

size_t RoundUp(size_t value, size_t power_of_two) {
  return (value + power_of_two - 1) & ~(power_of_two - 1);
}

absl::Status Validate(const MappedMemory::Options& options) {
  const size_t length = options.length_bytes;
  const size_t alignment = options.alignment_bytes;
  if (length == 0) return absl::InvalidArgumentError("mmap of 0 bytes");
  if ((options.flags & MAP_FIXED) != 0) return absl::InvalidArgumentError("mmap with MAP_FIXED");
  if (alignment != 0 && (!std::has_single_bit(alignment) || alignment < PageSizeBytes())) {
    return absl::InvalidArgumentError(
        absl::StrCat("mmap aligned to ", alignment, " bytes: not a page times a power of two"));
  }
  constexpr size_t kLimit = std::numeric_limits<size_t>::max() / 4;
  if (length > kLimit || alignment > kLimit) {
    return absl::InvalidArgumentError(
        absl::StrCat("mmap of ", length, " bytes aligned to ", alignment, ": out of range"));
  }
  return absl::OkStatus();
}

void Unmap(std::byte* begin, std::byte* end) {
  if (begin != end) KVD_CHECK(munmap(begin, static_cast<size_t>(end - begin)) == 0);
}

// Finds an aligned place: reserves more address space than is needed and gives back what lies
// before and after the aligned part. nullptr, with errno set, when there is not enough.
std::byte* ReserveAligned(size_t length, size_t alignment) {
  const size_t reserved = length + alignment;
  void* const mapped =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t address = reinterpret_cast<uintptr_t>(mapped);
  std::byte* const base = begin + (RoundUp(address, alignment) - address);
  Unmap(begin, base);
  Unmap(base + length, begin + reserved);
  return base;
}

}  // namespace

absl::StatusOr<MappedMemory> MappedMemory::Map(const Options& options) {
  KVD_RETURN_IF_ERROR(Validate(options));
  const std::string context =
      absl::StrCat("mmap ", options.length_bytes, " bytes of ",
                   options.fd < 0 ? "anonymous memory" : absl::StrCat("fd ", options.fd));
  int flags = options.flags;
  if (options.fd < 0) flags |= MAP_ANONYMOUS;
  std::byte* place = nullptr;
  const size_t whole_pages_bytes = RoundUp(options.length_bytes, PageSizeBytes());
  if (options.alignment_bytes != 0) {
    place = ReserveAligned(whole_pages_bytes, options.alignment_bytes);
    if (place == nullptr) return ErrnoStatus(context);
    flags |= MAP_FIXED;  // replaces the reservation, and nothing else
  }
  void* const base = mmap(place, options.length_bytes, options.protection, flags,
                          options.fd < 0 ? -1 : options.fd, options.offset_bytes);
  if (base == MAP_FAILED) {
    const int error = errno;
    if (place != nullptr) Unmap(place, place + whole_pages_bytes);
    return ErrnoStatus(error, context);
  }
  return MappedMemory(static_cast<std::byte*>(base), options.length_bytes);
}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  if (this != &other) {
    Reset();
    base_ = std::exchange(other.base_, nullptr);
    length_bytes_ = std::exchange(other.length_bytes_, 0);
  }
  return *this;
}

void MappedMemory::Reset() {
  std::byte* const base = std::exchange(base_, nullptr);
  const size_t length_bytes = std::exchange(length_bytes_, 0);
  if (base != nullptr) KVD_CHECK(munmap(base, length_bytes) == 0);
}

}  // namespace kvd
