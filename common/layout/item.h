// An item: header, key, value; verifies itself wherever it lies.
//
//   0                    8          16        18      19     20          24
//   +--------------------+----------+---------+-------+------+-----------+----------------+-----+-------+-----+
//   | version << 2|state | checksum | key len | flags | zero | value len | optional words | key | value | pad |
//   +--------------------+----------+---------+-------+------+-----------+----------------+-----+-------+-----+
//
// Optional words, 8 bytes each, in this order, only where their flag is set: expiry (microseconds of Unix time), user
// flags (32 bits, upper half zero), value length (64 bits; the short field is then zero). The whole is padded with
// zeroes to 8 bytes.
//
// The checksum covers bytes [16, padded end), and incarnation, location and version besides. So every byte
// but the two bits of state is under it, and an item of another incarnation, of another place or of another version of
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

struct ItemHeader {
  uint64_t version_and_state;
  uint64_t checksum;
  uint16_t key_len;
  uint8_t flags;
  uint8_t reserved;  // zero
  uint32_t value_len;
};

inline constexpr uint32_t kItemHeaderBytes = 24;
inline constexpr uint32_t kItemChecksumFrom = 16;

static_assert(std::is_standard_layout_v<ItemHeader> && std::has_unique_object_representations_v<ItemHeader>);
static_assert(sizeof(ItemHeader) == kItemHeaderBytes && alignof(ItemHeader) == 8);
static_assert(offsetof(ItemHeader, version_and_state) == 0);
static_assert(offsetof(ItemHeader, checksum) == 8);
static_assert(offsetof(ItemHeader, key_len) == kItemChecksumFrom);
static_assert(offsetof(ItemHeader, flags) == 18);
static_assert(offsetof(ItemHeader, reserved) == 19);
static_assert(offsetof(ItemHeader, value_len) == 20);

// Versions are 62 bits: microseconds of Unix time at the write, shifted by 10, raised above every earlier version of
// the shard. So they grow per key also across delete and re-insertion, and mostly across restarts.
inline constexpr uint64_t kVersionMax = (uint64_t{1} << 62) - 1;

constexpr uint64_t PackVersion(uint64_t version, ItemState state) {
  return version << 2 | static_cast<uint64_t>(state);
}
constexpr uint64_t VersionOf(uint64_t version_and_state) { return version_and_state >> 2; }
constexpr uint32_t StateBitsOf(uint64_t version_and_state) { return static_cast<uint32_t>(version_and_state & 3); }

// Bytes of optional words that `flags` announces.
constexpr uint32_t OptionalBytes(uint8_t flags) {
  return 8 * ((flags & kItemHasExpiry ? 1u : 0u) + (flags & kItemHasUserFlags ? 1u : 0u) +
              (flags & kItemLongValue ? 1u : 0u));
}

// Bytes of an item under its checksum and in the region, before the slot's rounding. No overflow for value lengths
// below 2^62.
constexpr uint64_t ItemBytes(uint8_t flags, uint64_t key_len, uint64_t value_len) {
  return (kItemHeaderBytes + OptionalBytes(flags) + key_len + value_len + 7) & ~uint64_t{7};
}

// The checksum of an item: XXH3-64 (seed 0) over its bytes [kItemChecksumFrom, padded end), at `body`, combined with
// what the item is bound to. Combined afterwards and not as XXH3's seed, because there it costs a reader an addition per
// word that depends on the item's first bytes. Different places, versions or incarnations of the same bytes always
// differ; of different bytes, all but one time in 2^64.
inline uint64_t ItemChecksum(const void* body, uint64_t body_bytes, uint64_t incarnation, RegionOffset location,
                             uint64_t version) {
  const uint64_t place = incarnation + ToBytes(location) * 0x9e3779b97f4a7c15u;
  return Checksum64(body, body_bytes, 0) ^ place ^ version * 0xd6e8feb86659fd93u;
}

}  // namespace kvd
