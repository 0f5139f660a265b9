// Mappings show their file, are aligned on request, go with their owner, and fail with errno named.
#include "common/base/mapped_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "common/base/unique_fd.h"
#include "common/base/units.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using Catch::Matchers::Contains;

// True while the page at `address` is mapped: msync refuses what is not.
bool IsMapped(const std::byte* address) {
  return msync(const_cast<std::byte*>(address), 1, MS_ASYNC) == 0;
}

UniqueFd MemoryFile(size_t length_bytes) {
  UniqueFd fd(memfd_create("mapped_memory_test", MFD_CLOEXEC));
  REQUIRE(fd.valid());
  REQUIRE(ftruncate(fd.get(), static_cast<off_t>(length_bytes)) == 0);
  return fd;
}

MappedMemory::Options Anonymous(size_t length_bytes) {
  return {.length_bytes = length_bytes,
          .protection = PROT_READ | PROT_WRITE,
          .flags = MAP_PRIVATE | MAP_NORESERVE};
}

TEST_CASE("MappedMemory: a file's mapping outlives the descriptor") {
  UniqueFd fd = MemoryFile(8192);
  REQUIRE(pwrite(fd.get(), "x", 1, 5000) == 1);
  const auto memory = MappedMemory::Map({.fd = fd.get(), .length_bytes = 8192});
  fd.Reset();
  KVD_REQUIRE_OK(memory);
  CHECK(memory->length_bytes() == 8192);
  CHECK(memory->base()[5000] == std::byte{'x'});
}

TEST_CASE("MappedMemory: the offset is honoured, also with an alignment") {
  const UniqueFd fd = MemoryFile(size_t{3} * 4096);
  REQUIRE(pwrite(fd.get(), "y", 1, 4096) == 1);
  const auto memory = MappedMemory::Map(
      {.fd = fd.get(), .offset_bytes = 4096, .length_bytes = 4096, .alignment_bytes = 2 * kMiB});
  KVD_REQUIRE_OK(memory);
  CHECK(memory->base()[0] == std::byte{'y'});
}

TEST_CASE("MappedMemory: the base is aligned and only the mapping remains") {
  for (const size_t alignment : {size_t{4096}, size_t{2 * kMiB}, size_t{kGiB}}) {
    for (const size_t length : {size_t{1}, size_t{4096}, size_t{5000}, size_t{3 * kMiB}}) {
      CAPTURE(alignment, length);
      MappedMemory::Options options = Anonymous(length);
      options.alignment_bytes = alignment;
      auto memory = MappedMemory::Map(options);
      KVD_REQUIRE_OK(memory);
      CHECK(reinterpret_cast<uintptr_t>(memory->base()) % alignment == 0);
      memory->base()[0] = std::byte{1};
      memory->base()[length - 1] = std::byte{2};
      std::byte* const base = memory->base();
      memory->Reset();
      CHECK_FALSE(IsMapped(base));
      CHECK(memory->base() == nullptr);
      CHECK(memory->length_bytes() == 0);
    }
  }
}

TEST_CASE("MappedMemory: moving hands the mapping over") {
  auto first = MappedMemory::Map(Anonymous(4096));
  auto second = MappedMemory::Map(Anonymous(4096));
  KVD_REQUIRE_OK(first);
  KVD_REQUIRE_OK(second);
  std::byte* const kept = first->base();
  std::byte* const replaced = second->base();
  *second = std::move(*first);
  CHECK(second->base() == kept);
  CHECK(IsMapped(kept));
  CHECK_FALSE(IsMapped(replaced));
  CHECK(first->base() == nullptr);
  const MappedMemory third = std::move(*second);
  CHECK(third.base() == kept);
}

TEST_CASE("MappedMemory: unusable options are refused") {
  KVD_REQUIRE_CODE(MappedMemory::Map(Anonymous(0)), kInvalidArgument);
  for (const size_t alignment : {size_t{1}, size_t{64}, size_t{3} * 4096}) {
    MappedMemory::Options options = Anonymous(4096);
    options.alignment_bytes = alignment;
    KVD_REQUIRE_CODE(MappedMemory::Map(options), kInvalidArgument);
  }
  MappedMemory::Options fixed = Anonymous(4096);
  fixed.flags |= MAP_FIXED;
  KVD_REQUIRE_CODE(MappedMemory::Map(fixed), kInvalidArgument);
  KVD_REQUIRE_CODE(MappedMemory::Map(Anonymous(std::numeric_limits<size_t>::max())),
                   kInvalidArgument);
}

TEST_CASE("MappedMemory: the kernel's refusal comes with errno and the length") {
  const size_t length = size_t{1} << 60;
  for (const size_t alignment : {size_t{0}, size_t{2 * kMiB}}) {
    MappedMemory::Options options = Anonymous(length);
    options.alignment_bytes = alignment;
    const auto memory = MappedMemory::Map(options);
    KVD_REQUIRE_CODE(memory, kResourceExhausted);
    CHECK_THAT(test::MessageOf(memory), Contains("1152921504606846976") && Contains("errno 12"));
  }
}

TEST_CASE("MappedMemory: a descriptor that cannot be mapped is named with errno") {
  const UniqueFd read_only(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto memory =
      MappedMemory::Map({.fd = read_only.get(), .length_bytes = 4096, .alignment_bytes = 2 * kMiB});
  KVD_REQUIRE_CODE(memory, kNotFound);
  CHECK_THAT(test::MessageOf(memory), Contains("errno 19"));  // ENODEV
}

}  // namespace
}  // namespace kvd
