// A slot: where an item lies and which keys it may be, in 8 bytes.
//
//   63        52 51        40 39                                  0
//   +-----------+------------+------------------------------------+
//   | tag (12)  | size (12)  | location / 8 bytes (40)            |
//   +-----------+------------+------------------------------------+
//
// Zero is empty (no item lies at offset zero). The size is a small floating-point number of 8-byte units: exact up to
// 2,040 bytes, above that rounded up by less than 1/128, so the READ of an item is bounded by its slot alone and an
// item's memory is allocated at that rounded size: a READ never leaves it.
#pragma once

#include <bit>
#include <cstdint>

#include "common/layout/units.h"

namespace kvd {

using Slot = uint64_t;

inline constexpr Slot kEmptySlot = 0;
inline constexpr uint64_t kLocationUnitsMax = (uint64_t{1} << 40) - 1;  // 8 TiB of region
inline constexpr uint64_t kItemBytesMax = uint64_t{1} << 40;             // that a size code is defined for
inline constexpr uint32_t kSlotTagShift = 52;
inline constexpr uint64_t kSlotTagMask = uint64_t{0xfff} << kSlotTagShift;

// Rounds `bytes` up to a size that a slot can say, as its 12-bit code. At most kItemBytesMax.
constexpr uint32_t EncodeItemSize(uint64_t bytes) {
  uint64_t units = (bytes + kLocationUnitBytes - 1) / kLocationUnitBytes;
  if (units < 256) return static_cast<uint32_t>(units);
  int shift = std::bit_width(units) - 8;
  uint64_t mantissa = (units + (uint64_t{1} << shift) - 1) >> shift;
  if (mantissa == 256) {
    mantissa = 128;
    ++shift;
  }
  return static_cast<uint32_t>((static_cast<uint64_t>(shift) + 1) << 7 | (mantissa - 128));
}

// Bytes that a size code stands for.
constexpr uint64_t DecodeItemSize(uint32_t code) {
  const uint32_t exponent = code >> 7;
  const uint64_t mantissa = code & 127;
  const uint64_t units = exponent == 0 ? mantissa : (128 + mantissa) << (exponent - 1);
  return units * kLocationUnitBytes;
}

// The size that an item of `bytes` occupies: the smallest one that a slot can say exactly.
constexpr uint64_t RoundUpItemSize(uint64_t bytes) { return DecodeItemSize(EncodeItemSize(bytes)); }

// The part of a hash that a slot keeps; independent of the bits that choose shard and bucket.
constexpr uint32_t SlotTag(uint64_t hash) { return static_cast<uint32_t>(hash >> 36) & 0xfff; }

constexpr Slot PackSlot(uint32_t tag, uint64_t item_bytes, RegionOffset location) {
  return uint64_t{tag} << kSlotTagShift | uint64_t{EncodeItemSize(item_bytes)} << 40 |
         ToBytes(location) / kLocationUnitBytes;
}

constexpr uint32_t TagOf(Slot slot) { return static_cast<uint32_t>(slot >> kSlotTagShift); }
constexpr RegionOffset LocationOf(Slot slot) { return RegionOffset{(slot & kLocationUnitsMax) * kLocationUnitBytes}; }
constexpr uint64_t ItemBytesOf(Slot slot) { return DecodeItemSize(static_cast<uint32_t>(slot >> 40) & 0xfff); }

static_assert(DecodeItemSize(EncodeItemSize(2040)) == 2040);
static_assert(DecodeItemSize(EncodeItemSize(2041)) == 2048);
static_assert(DecodeItemSize(EncodeItemSize(uint64_t{1} << 40)) == uint64_t{1} << 40);

}  // namespace kvd
