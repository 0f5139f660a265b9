// Which keys this client reads one-sidedly, of which the server would otherwise know nothing: some
// GETs, by chance, are noted, and the notes go to the server together, so that it can tell what is
// used and what may be evicted.
//
// The longer a value, the likelier it is noted: of small ones one in kEvery, of kAlwaysBytes and
// more each. A note costs the same for any, and says more of a large one: there are fewer of them
// in as much memory, each read fewer times before it is evicted.
//
// A batch is due with kBatch notes, or when what was noted has kBatchBytes: so a large value is
// told of as soon as it is read. What a client has not told yet it tells when it is closed.
//
// The cost is bounded: one counter per GET, and a request of 512 bytes at most and one credit for a
// moment per batch. That is per kEvery * kBatch = 256 GETs of small values, and never more than one
// byte in kAlwaysBytes / 8 = 512 that were read besides.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvd {

class HitSampler {
 public:
  static constexpr uint32_t kEvery = 4;
  static constexpr uint64_t kAlwaysBytes = 4096;
  static constexpr size_t kBatch = 64;
  static constexpr uint64_t kBatchBytes = uint64_t{1} << 20;

  // Only servers that evict want to know.
  void Enable(bool wanted) { wanted_ = wanted; }
  bool wanted() const { return wanted_; }

  // True: a batch is due.
  bool Note(uint64_t hash, uint64_t value_bytes) {
    if (!wanted_) return false;
    // A linear congruential generator (Numerical Recipes): by chance, so that no rhythm of the
    // application escapes it.
    dice_ = dice_ * 1664525 + 1013904223;
    if (dice_ >= ChanceOf(value_bytes)) [[likely]] {
      return false;
    }
    // Full: the oldest note makes room.
    hashes_[count_++ % kBatch] = hash;
    bytes_ += std::min(value_bytes, kBatchBytes);
    return count_ >= kBatch || bytes_ >= kBatchBytes;
  }

  bool anything_noted() const { return count_ != 0; }

  // The notes, as the bytes of a request.
  std::string_view Take() {
    const size_t count = count_ < kBatch ? count_ : kBatch;
    count_ = 0;
    bytes_ = 0;
    return {reinterpret_cast<const char*>(hashes_.data()), count * sizeof(uint64_t)};
  }

 private:
  // In 2^32.
  static constexpr uint64_t kCertain = uint64_t{1} << 32;
  static uint64_t ChanceOf(uint64_t value_bytes) {
    return std::max(kCertain / kEvery,
                    std::min(value_bytes, kAlwaysBytes) * (kCertain / kAlwaysBytes));
  }

  bool wanted_ = false;
  uint32_t dice_ = 1;
  size_t count_ = 0;
  uint64_t bytes_ = 0;  // of the values that were noted
  std::array<uint64_t, kBatch> hashes_{};
};

}  // namespace kvd
