// Pseudo-random numbers for jitter, sampling and tests, and true ones for identifiers.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "common/base/check.h"

namespace kvd {

// 64 bits from the kernel's generator, fit for incarnations and hash seeds. Blocks only before the
// kernel's generator is ready, early in boot. Errors: as ErrnoStatus makes of getrandom's errno.
absl::StatusOr<uint64_t> RandomU64FromOs();

// xoshiro256** (Blackman and Vigna 2018), seeded through SplitMix64: the same numbers for the same
// seed on every machine. Not for secrets. One thread at a time. Works with <random> and
// std::shuffle as a UniformRandomBitGenerator.
class Random {
 public:
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return std::numeric_limits<uint64_t>::max(); }

  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = SplitMix64(seed);
  }

  uint64_t operator()() { return Next(); }

  uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // In [0, bound), bound > 0. Multiply and shift (Lemire 2019) without the rejection step: the bias
  // is below bound / 2^64.
  uint64_t Uniform(uint64_t bound) {
    KVD_CHECK(bound > 0);
    return static_cast<uint64_t>((static_cast<Uint128>(Next()) * bound) >> 64);
  }

  // In [low, high], low <= high.
  uint64_t Between(uint64_t low, uint64_t high) {
    KVD_CHECK(low <= high);
    const uint64_t count = high - low + 1;
    return count == 0 ? Next() : low + Uniform(count);
  }

  // In [0, 1), with 53 random bits.
  double NextDouble() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // True once in `n` calls on average, n > 0.
  bool OneIn(uint64_t n) { return Uniform(n) == 0; }

 private:
  __extension__ using Uint128 = unsigned __int128;

  static uint64_t SplitMix64(uint64_t& state) {
    state += 0x9E3779B97F4A7C15;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  uint64_t state_[4];
};

}  // namespace kvd
