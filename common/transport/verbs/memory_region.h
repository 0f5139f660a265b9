// Registered memory: what a device may read or write.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/mapped_memory.h"
#include "common/transport/verbs/rdma_context.h"

namespace kvd::verbs {

class MemoryRegion {
 public:
  // Pins `memory`, which stays the caller's and must outlive the registration. `access` is of
  // IBV_ACCESS_*. ResourceExhausted names the need and the limit (memlock, max_mr_size).
  static absl::StatusOr<MemoryRegion> Register(std::shared_ptr<ProtectionDomain> pd,
                                               std::span<std::byte> memory, int access);

  MemoryRegion() = default;
  ~MemoryRegion() { Reset(); }
  MemoryRegion(MemoryRegion&& other) noexcept
      : pd_(std::move(other.pd_)), mr_(std::exchange(other.mr_, nullptr)) {}
  MemoryRegion& operator=(MemoryRegion&& other) noexcept;

  ibv_mr* get() const { return mr_; }
  uint32_t lkey() const { return mr_->lkey; }
  uint32_t rkey() const { return mr_->rkey; }
  std::byte* base() const { return static_cast<std::byte*>(mr_->addr); }
  size_t length_bytes() const { return mr_->length; }
  bool Contains(const std::byte* at, uint64_t bytes) const {
    return at >= base() && bytes <= length_bytes() &&
           static_cast<size_t>(at - base()) <= length_bytes() - bytes;
  }

  // Ends the registration now; peers that still read get a remote access error.
  void Reset();

 private:
  MemoryRegion(std::shared_ptr<ProtectionDomain> pd, ibv_mr* mr) : pd_(std::move(pd)), mr_(mr) {}

  std::shared_ptr<ProtectionDomain> pd_;
  ibv_mr* mr_ = nullptr;
};

// Whole pages of our own, mapped and registered: a fork then shares no page with what a device
// writes.
class RegisteredPages {
 public:
  static absl::StatusOr<RegisteredPages> Create(std::shared_ptr<ProtectionDomain> pd, size_t bytes,
                                                int access);

  RegisteredPages() = default;
  RegisteredPages(RegisteredPages&&) noexcept = default;
  RegisteredPages& operator=(RegisteredPages&& other) noexcept {
    region_ = std::move(other.region_);  // first what was registered, then its memory
    memory_ = std::move(other.memory_);
    return *this;
  }

  std::byte* base() const { return memory_.base(); }
  size_t length_bytes() const { return memory_.length_bytes(); }
  const MemoryRegion& region() const { return region_; }

 private:
  MappedMemory memory_;
  MemoryRegion region_;
};

}  // namespace kvd::verbs
