// Which keys this client reads one-sidedly, of which the server would otherwise know nothing: one
// GET in kEvery, by chance, is noted, and the notes go to the server together, so that it can tell
// what is used and what may be evicted.
//
// The cost is bounded: one counter per GET, 8 bytes of a request of 512 bytes and one credit for a
// moment per kEvery * kBatch = 512 GETs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvd {

class HitSampler {
 public:
  static constexpr uint32_t kEvery = 8;
  static constexpr size_t kBatch = 64;

  // Only servers that evict want to know.
  void Enable(bool wanted) { wanted_ = wanted; }
  bool wanted() const { return wanted_; }

  // True: a batch is full.
  bool Note(uint64_t hash) {
    // A linear congruential generator (Numerical Recipes): by chance, so that no rhythm of the
    // application escapes it.
    dice_ = dice_ * 1664525 + 1013904223;
    if (dice_ >= (uint64_t{1} << 32) / kEvery || !wanted_) [[likely]] {
      return false;
    }
    // Full: the oldest note makes room.
    hashes_[count_++ % kBatch] = hash;
    return count_ >= kBatch;
  }

  // The notes, as the bytes of a request.
  std::string_view Take() {
    const size_t count = count_ < kBatch ? count_ : kBatch;
    count_ = 0;
    return {reinterpret_cast<const char*>(hashes_.data()), count * sizeof(uint64_t)};
  }

 private:
  bool wanted_ = false;
  uint32_t dice_ = 1;
  size_t count_ = 0;
  std::array<uint64_t, kBatch> hashes_{};
};

}  // namespace kvd
