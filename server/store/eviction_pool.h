// The oldest items that were met of late, as candidates for eviction: an approximation of LRU that
// remembers its best finds (Redis has one like it).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/layout/slot.h"
#include "server/store/access_stamps.h"

namespace kvd {

// An item as it was met; it may have been used, moved or deleted since.
struct EvictionCandidate {
  Slot slot = kEmptySlot;
  uint32_t bucket = 0;
  AccessStamps::Stamp stamp = 0;
};

class EvictionPool {
 public:
  static constexpr size_t kSizeMax = 32;

  size_t size() const { return size_; }
  const EvictionCandidate& operator[](size_t i) const { return candidates_[i]; }

  // Keeps the candidate, in place of the youngest one if there is no room, unless it is younger.
  template <typename AgeOf>
  void Offer(const EvictionCandidate& candidate, AgeOf age_of) {
    for (size_t i = 0; i < size_; ++i) {
      if (candidates_[i].slot == candidate.slot) {
        candidates_[i] = candidate;
        return;
      }
    }
    if (size_ < candidates_.size()) {
      candidates_[size_++] = candidate;
      return;
    }
    const auto younger = [&](const EvictionCandidate& a, const EvictionCandidate& b) {
      return age_of(a.stamp) < age_of(b.stamp);
    };
    auto youngest = std::min_element(candidates_.begin(), candidates_.end(), younger);
    if (younger(*youngest, candidate)) *youngest = candidate;
  }

  void Forget(Slot slot) {
    for (size_t i = 0; i < size_; ++i) {
      if (candidates_[i].slot == slot) return Remove(i);
    }
  }
  void Remove(size_t i) { candidates_[i] = candidates_[--size_]; }

 private:
  std::array<EvictionCandidate, kSizeMax> candidates_{};
  size_t size_ = 0;
};

}  // namespace kvd
