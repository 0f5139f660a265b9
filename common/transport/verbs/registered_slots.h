// Registered memory in slots of one size, taken from the system in slabs as it is needed and kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transport/verbs/memory_region.h"

namespace kvd::verbs {

// One thread at a time.
class RegisteredSlots {
 public:
  RegisteredSlots(std::shared_ptr<ProtectionDomain> pd, size_t slot_bytes)
      : pd_(std::move(pd)), slot_bytes_(slot_bytes) {}

  size_t slot_bytes() const { return slot_bytes_; }
  size_t free_slots() const { return free_.size(); }

  // A slot that is nobody's. ResourceExhausted: no more memory can be registered.
  absl::StatusOr<uint32_t> Take() {
    if (free_.empty()) {
      if (absl::Status grown = Grow(); !grown.ok()) return grown;
    }
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void Give(uint32_t slot) { free_.push_back(slot); }

  // Until there are `count` free ones.
  absl::Status Reserve(size_t count);

  std::byte* At(uint32_t slot) const {
    return slabs_[slot / kSlabSlots].base() + slot % kSlabSlots * slot_bytes_;
  }
  uint32_t KeyOf(uint32_t slot) const { return slabs_[slot / kSlabSlots].region().lkey(); }

 private:
  static constexpr uint32_t kSlabSlots = 128;

  absl::Status Grow();

  std::shared_ptr<ProtectionDomain> pd_;
  size_t slot_bytes_;
  std::vector<RegisteredPages> slabs_;
  std::vector<uint32_t> free_;
};

}  // namespace kvd::verbs
