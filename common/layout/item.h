// An item: header, key, value; verifies itself wherever it lies. It has one of two forms, of which its lengths leave no choice.
//
// Short: key of up to 127 bytes, value of up to 511, no optional words. Most items are that small, and 8 bytes less of each
// let one more of them lie in a bucket.
//
//   0                    8                                16
//   +--------------------+------------+-----------+---------+-----+-------+-----+
//   | version << 2|state | check (48) | value (9) | key (7) | key | value | pad |
//   +--------------------+------------+-----------+---------+-----+-------+-----+
//
// Long: every other item. Where the short form has the length of the key there are seven zeroes.
//
//   0                    8                16        18      19     20          24
//   +--------------------+------------+---+---------+-------+------+-----------+----------------+-----+-------+-----+
//   | version << 2|state | check (57) | 0 | key len | flags | zero | value len | optional words | key | value | pad |
//   +--------------------+------------+---+---------+-------+------+-----------+----------------+-----+-------+-----+
//
// Optional words, 8 bytes each, in this order, only where their flag is set: expiry (microseconds of Unix time), user
// flags (32 bits, upper half zero), value length (64 bits; the short field is then zero). The whole is padded with
// zeroes to 8 bytes.
//
// The check covers bytes [16, padded end), and incarnation, location, version and the short form's lengths besides. So every
// byte but the two bits of state is under it, and an item of another incarnation, of another place or of another version of
// the same place does not verify.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/base/checksum.h"
#include "common/layout/units.h"

namespace kvd {

// DEAD: replaced, deleted or moved. WRITING: being written, not yet acknowledged. Only LIVE is ever returned.
// Zero is DEAD, so memory that was never written holds no live item.
enum class ItemState : uint32_t { kDead = 0, kWriting = 1, kLive = 2 };

inline constexpr uint8_t kItemHasExpiry = 1;
inline constexpr uint8_t kItemHasUserFlags = 2;
inline constexpr uint8_t kItemLongValue = 4;
inline constexpr uint8_t kItemFlagsKnown = kItemHasExpiry | kItemHasUserFlags | kItemLongValue;

// How every item begins.
struct ItemHeader {
  uint64_t version_and_state;
  uint64_t check_and_lengths;
};

// What follows it in the long form.
struct LongItemHeader {
  uint16_t key_len;
  uint8_t flags;
  uint8_t reserved;  // zero
  uint32_t value_len;
};

inline constexpr uint32_t kItemHeaderBytes = 16;
inline constexpr uint32_t kLongItemHeaderBytes = 24;  // both
inline constexpr uint32_t kItemBytesMin = 24;         // of an item: one byte of key

static_assert(std::is_standard_layout_v<ItemHeader> && std::has_unique_object_representations_v<ItemHeader>);
static_assert(sizeof(ItemHeader) == kItemHeaderBytes && alignof(ItemHeader) == 8);
static_assert(offsetof(ItemHeader, version_and_state) == 0);
static_assert(offsetof(ItemHeader, check_and_lengths) == 8);
static_assert(std::is_standard_layout_v<LongItemHeader> && std::has_unique_object_representations_v<LongItemHeader>);
static_assert(sizeof(LongItemHeader) == 8 && sizeof(LongItemHeader) == kLongItemHeaderBytes - kItemHeaderBytes);
static_assert(offsetof(LongItemHeader, key_len) == 0);
static_assert(offsetof(LongItemHeader, flags) == 2);
static_assert(offsetof(LongItemHeader, reserved) == 3);
static_assert(offsetof(LongItemHeader, value_len) == 4);

// Versions are 62 bits: microseconds of Unix time at the write, shifted by 10, raised above every earlier version of
// the shard. So they grow per key also across delete and re-insertion, and mostly across restarts.
inline constexpr uint64_t kVersionMax = (uint64_t{1} << 62) - 1;

constexpr uint64_t PackVersion(uint64_t version, ItemState state) {
  return version << 2 | static_cast<uint64_t>(state);
}
constexpr uint64_t VersionOf(uint64_t version_and_state) { return version_and_state >> 2; }
constexpr uint32_t StateBitsOf(uint64_t version_and_state) { return static_cast<uint32_t>(version_and_state & 3); }

// The short form's lengths: the low bits of an item's second word.
inline constexpr uint64_t kShortKeyBytesMax = 127;
inline constexpr uint64_t kShortValueBytesMax = 511;
inline constexpr uint64_t kShortLengthsMask = 0xffff;
constexpr uint64_t PackShortLengths(uint64_t key_len, uint64_t value_len) { return value_len << 7 | key_len; }
constexpr uint64_t ShortKeyBytes(uint64_t check_and_lengths) { return check_and_lengths & 0x7f; }  // 0: the long form
constexpr uint64_t ShortValueBytes(uint64_t check_and_lengths) { return check_and_lengths >> 7 & 0x1ff; }

constexpr bool IsShortItem(uint8_t flags, uint64_t key_len, uint64_t value_len) {
  return flags == 0 && key_len <= kShortKeyBytesMax && value_len <= kShortValueBytesMax;
}

// Bytes of optional words that `flags` announces.
constexpr uint32_t OptionalBytes(uint8_t flags) {
  return 8 * ((flags & kItemHasExpiry ? 1u : 0u) + (flags & kItemHasUserFlags ? 1u : 0u) +
              (flags & kItemLongValue ? 1u : 0u));
}

// Bytes of an item before its key.
constexpr uint64_t BytesBeforeKey(uint8_t flags, uint64_t key_len, uint64_t value_len) {
  return IsShortItem(flags, key_len, value_len) ? kItemHeaderBytes : kLongItemHeaderBytes + OptionalBytes(flags);
}

// Bytes of an item in the region, before the slot's rounding. No overflow for value lengths below 2^62.
constexpr uint64_t ItemBytes(uint8_t flags, uint64_t key_len, uint64_t value_len) {
  return (BytesBeforeKey(flags, key_len, value_len) + key_len + value_len + 7) & ~uint64_t{7};
}

// The second word of an item: its check, and in the short form the lengths (`short_lengths`; 0: the long form). The check is
// XXH3-64 (seed 0) over the item's bytes [16, padded end), at `body`, combined with what the item is bound to; its low 48
// or 57 bits are kept. Combined afterwards and not as XXH3's seed, because there it costs a reader an addition per word that
// depends on the item's first bytes. The fold lets the upper bits of what is multiplied count as well. Two checks that ought
// to differ are the same one time in 2^48 (or 2^57); never, if the bytes are the same, where one bit of the version, or the
// lengths, or the place is all that differs.
inline uint64_t ItemCheckWord(const void* body, uint64_t body_bytes, uint64_t incarnation, RegionOffset location,
                              uint64_t version, uint64_t short_lengths) {
  uint64_t bound = (incarnation + ToBytes(location) * 0x9e3779b97f4a7c15u) ^ version * 0xd6e8feb86659fd93u ^
                   short_lengths * 0xbf58476d1ce4e5b9u;
  bound ^= bound >> 32;
  const uint64_t check = Checksum64(body, body_bytes, 0) ^ bound;
  return check << (short_lengths != 0 ? 16 : 7) | short_lengths;
}

}  // namespace kvd
