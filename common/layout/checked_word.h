// An 8-byte word that proves itself: 32 bits of content and 32 bits of checksum.
//
//   63                          32 31                           0
//   +-----------------------------+-----------------------------+
//   | check                       | value                       |
//   +-----------------------------+-----------------------------+
//
// The check covers the value, its place (which word it is) and the incarnation, so a torn read, a word of another
// incarnation or a word of another place does not verify. An all-zero word means "not set"; a set word is never zero
// because its check has the top bit forced.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/hash.h"

namespace kvd {

// Which array a checked word belongs to: part of its place.
enum class CheckedWordKind : uint64_t {
  kDirectoryEntry = 0x6469726563746f72,  // value: segment number
  kBucketCount = 0x6275636b6574636e,     // value: buckets of the shard
};

inline uint64_t PackCheckedWord(CheckedWordKind kind, uint64_t place, uint64_t incarnation, uint32_t value) {
  const uint64_t mixed = Mix64(Mix64(static_cast<uint64_t>(kind) ^ incarnation) + (place << 32 | value));
  return ((mixed >> 32 | 0x80000000u) << 32) | value;
}

// The word's value; nullopt for a word that is not set, torn, or of another place or incarnation.
inline std::optional<uint32_t> UnpackCheckedWord(CheckedWordKind kind, uint64_t place, uint64_t incarnation,
                                                 uint64_t word) {
  const uint32_t value = static_cast<uint32_t>(word);
  if (word == 0 || PackCheckedWord(kind, place, incarnation, value) != word) return std::nullopt;
  return value;
}

}  // namespace kvd
