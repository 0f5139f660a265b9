// Hashes of keys and integers.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/checksum.h"

namespace kvd {

// XXH3-64 of the key's bytes: server and clients must agree on it, so it never changes within a
// layout version. A secret `seed` keeps outsiders from aiming keys at one bucket.
// Inlined up to kInlineChecksumMaxBytes, for Checksum64 is the same function.
[[maybe_unused]] static inline uint64_t HashKey(std::string_view key, uint64_t seed) {
  return Checksum64(key.data(), key.size(), seed);
}

// A bijection of 64-bit words in which every input bit changes half of the output bits (the
// finalizer of SplitMix64, Steele, Lea and Flood 2014, variant 13 of Stafford).
inline uint64_t Mix64(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

}  // namespace kvd
