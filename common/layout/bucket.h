// A bucket: 144 bytes of header under one checksum, then local space in which the bucket's own small items lie.
//
//   0    4        8                       16
//   +----+--------+-----------------------+----------------------------+
//   | ck | version| link                  | 16 slots, 8 bytes each     |   header
//   +----+--------+-----------------------+----------------------------+
//   | local space: items of this bucket                                |   bucket_bytes - 144
//   +------------------------------------------------------------------+
//
//   link: 63         48 47    40 39                                  0
//         +------------+--------+------------------------------------+
//         | filter     | depth  | overflow header's offset / 8       |   0: no overflow header
//         +------------+--------+------------------------------------+
//
// More than 16 items: a chain of overflow headers in the heap, of this same struct, without local space. An overflow
// header is complete before it is linked. The version changes with every change of the header or of anything in its
// chain. Depth is the number of low hash bits by which this bucket's keys agree with its number. A reader whose key does
// not agree goes to where the key was moved when the bucket was split. A depth too small for the bucket's own number says
// that the bucket has been merged into another one and is empty: FollowDepth in common/protocol/geometry.h for both.
//
// The filter has a bit for each value of a tag's low four bits: where the bit of a key's tag is zero, the key has no slot in
// the chain, and the bucket's own header alone shows that a key is absent. (In overflow headers it is zero.)
//
// The checksum covers bytes [4, 144) and is seeded with incarnation and place (HeaderSeed below).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/base/checksum.h"
#include "common/base/hash.h"
#include "common/layout/slot.h"
#include "common/layout/units.h"

namespace kvd {

inline constexpr uint32_t kBucketHeaderBytes = 144;
inline constexpr uint32_t kSlotsPerHeader = 16;

struct BucketHeader {
  uint32_t checksum;
  uint32_t version;
  uint64_t link;
  Slot slots[kSlotsPerHeader];
};

static_assert(std::is_standard_layout_v<BucketHeader> && std::has_unique_object_representations_v<BucketHeader>);
static_assert(sizeof(BucketHeader) == kBucketHeaderBytes && alignof(BucketHeader) == 8);
static_assert(offsetof(BucketHeader, checksum) == 0);
static_assert(offsetof(BucketHeader, version) == 4);
static_assert(offsetof(BucketHeader, link) == 8);
static_assert(offsetof(BucketHeader, slots) == 16);

constexpr uint64_t PackLink(uint32_t depth, RegionOffset overflow, uint64_t chain_filter = 0) {
  return chain_filter << 48 | uint64_t{depth} << 40 | ToBytes(overflow) / kLocationUnitBytes;
}
constexpr uint32_t DepthOf(uint64_t link) { return static_cast<uint32_t>(link >> 40) & 0xff; }
constexpr RegionOffset OverflowOf(uint64_t link) { return RegionOffset{(link & kLocationUnitsMax) * kLocationUnitBytes}; }
constexpr uint64_t ChainFilterOf(uint64_t link) { return link >> 48; }

// What a slot of that tag in the chain adds to the filter.
constexpr uint64_t ChainFilterBit(uint32_t tag) { return uint64_t{1} << (tag & 15); }

// The next header in which a slot of that tag may be; offset 0: there is none. `link` is of the bucket's own header.
constexpr RegionOffset ChainFor(uint64_t link, uint32_t tag) {
  return (ChainFilterOf(link) & ChainFilterBit(tag)) == 0 ? RegionOffset{0} : OverflowOf(link);
}

// Seed of a header's checksum. A bucket's own header passes overflow = 0; a chained one its own offset.
inline uint64_t HeaderSeed(uint64_t incarnation, uint32_t shard, BucketIndex bucket, RegionOffset overflow) {
  return Mix64(incarnation ^ Mix64(uint64_t{shard} << 32 | ToNumber(bucket))) + ToBytes(overflow);
}

inline uint32_t HeaderChecksum(const BucketHeader& header, uint64_t seed) {
  return Checksum32(reinterpret_cast<const char*>(&header) + sizeof(uint32_t), kBucketHeaderBytes - sizeof(uint32_t),
                    seed);
}

}  // namespace kvd
