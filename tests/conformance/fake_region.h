// A region without a store: a superblock that clients accept, and bytes that tests know.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/mapped_memory.h"
#include "common/base/unique_fd.h"
#include "common/layout/hello.h"

namespace kvd::test {

class FakeRegion {
 public:
  static constexpr uint64_t kBytes = uint64_t{4} << 20;
  static constexpr uint64_t kDataOffset =
      uint64_t{1} << 20;  // from here on: word i of the region holds Word(i)
  // Behind the region, in the same mapping, though no client knows: memory that pulls may land in.
  static constexpr uint64_t kLandingBytes = uint64_t{72} << 20;

  explicit FakeRegion(uint64_t incarnation = 0x1234567);

  static uint64_t Word(uint64_t index) { return index * 0x9e3779b97f4a7c15u; }

  int fd() const { return fd_.get(); }
  std::byte* base() const { return memory_.base(); }
  std::span<std::byte> landing() const { return {base() + kBytes, kLandingBytes}; }
  // Both: what a device must be able to write.
  std::span<std::byte> whole() const { return {base(), kBytes + kLandingBytes}; }

  // An admission to this region.
  Welcome MakeWelcome(uint64_t session_id, uint32_t credits, uint32_t frame_bytes) const;

 private:
  uint64_t incarnation_;
  UniqueFd fd_;
  MappedMemory memory_;
};

}  // namespace kvd::test
