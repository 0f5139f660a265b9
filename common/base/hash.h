// Hashes of keys and integers.
#ifndef KVD_COMMON_BASE_HASH_H_
#define KVD_COMMON_BASE_HASH_H_

#include <cstdint>
#include <string_view>

#define XXH_INLINE_ALL  // all of it is static in each file that includes it
#include <xxhash.h>

namespace kvd {

// XXH3-64 of the key's bytes: server and clients must agree on it, so it never changes within a
// layout version. A secret `seed` keeps outsiders from aiming keys at one bucket.
// `static`, because it calls functions that are: one definition per file is what the standard asks.
[[maybe_unused]] static inline uint64_t HashKey(std::string_view key, uint64_t seed) {
  return XXH3_64bits_withSeed(key.data(), key.size(), seed);
}

// A bijection of 64-bit words in which every input bit changes half of the output bits (the
// finalizer of SplitMix64, Steele, Lea and Flood 2014, variant 13 of Stafford).
inline uint64_t Mix64(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

}  // namespace kvd

#endif  // KVD_COMMON_BASE_HASH_H_
