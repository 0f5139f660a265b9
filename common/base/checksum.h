// Checksums of what lies in the region and on the wire.
#pragma once

#include <cstddef>
#include <cstdint>

#define XXH_INLINE_ALL  // all of it is static in each file that includes it
#include <xxhash.h>

namespace kvd {

// Longest input that is computed in the caller's code; XXH3 has no loop of vectors up to here.
inline constexpr size_t kInlineChecksumMaxBytes = 240;

namespace internal {

// Checksum64 of more than kInlineChecksumMaxBytes, with the widest vectors that this CPU has.
uint64_t Checksum64Long(const void* data, size_t len_bytes, uint64_t seed);

}  // namespace internal

// XXH3-64 with a seed (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md): the same value on
// every CPU. `data` may have any alignment, and may be null if the length is 0. It must not change
// meanwhile: memory that a peer may write is copied first. Any thread.
//
// `static`, because it calls functions that are: then each file has its own, as the standard asks.
//
// It detects damage and torn reads; it is no protection against an adversary.
[[maybe_unused]] static inline uint64_t Checksum64(const void* data, size_t len_bytes,
                                                   uint64_t seed) {
  if (len_bytes <= kInlineChecksumMaxBytes) return XXH3_64bits_withSeed(data, len_bytes, seed);
  return internal::Checksum64Long(data, len_bytes, seed);
}

// The low 32 bits of Checksum64.
[[maybe_unused]] static inline uint32_t Checksum32(const void* data, size_t len_bytes,
                                                   uint64_t seed) {
  return static_cast<uint32_t>(Checksum64(data, len_bytes, seed));
}

}  // namespace kvd
