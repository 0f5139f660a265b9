// The first page of the region.
//
//   0    +--------------------------------------------------+
//        | identity: magic, version, incarnation, geometry, |  written once, before the region is shared;
//        | checksum (96 bytes)                              |  checksum over bytes [0, 88)
//   128  +--------------------------------------------------+
//        | lifeline word (its own cache line)               |  says whether the kvd that owns the region lives
//   1024 +--------------------------------------------------+
//        | bucket counts: kShardsMax checked words          |  hints; a bucket's own depth is the truth
//   3072 +--------------------------------------------------+
//        | reserved, zero                                   |
//   4096 +--------------------------------------------------+
//
// The segment directory follows at `directory_offset`: one checked word an entry. Local bucket b of shard s lies in
// directory entry (b / buckets_per_segment) * shard_count + s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/layout/units.h"

namespace kvd {

inline constexpr uint64_t kSuperblockMagic = 0x314e47455244564b;  // the bytes "KVDREGN1"
inline constexpr uint32_t kLayoutVersion = 4;

// Feature bits of the region's layout. A reader refuses a region with a bit that it does not know.
inline constexpr uint32_t kLayoutFeaturesKnown = 0;

struct RegionIdentity {
  uint64_t magic;
  uint32_t layout_version;
  uint32_t feature_bits;
  uint64_t incarnation;
  uint64_t region_bytes;
  uint32_t bucket_bytes;
  uint32_t shard_count;
  uint64_t directory_offset;
  uint32_t directory_entries;
  uint32_t segment_bytes;
  uint64_t created_unix_us;
  uint64_t reserved[3];  // zero
  uint64_t checksum;     // Checksum64 over all before it, seed kSuperblockMagic
};

// The lifeline is a robust futex: while kvd serves it holds the id of a thread of kvd; the kernel sets
// kLifelineOwnerDied in it when that thread is gone for whatever reason, before kvd's sockets and locks are released.
// So a reader on the same host that finds the word alive *after* it read an item knows that no later kvd can have
// acknowledged a write before that. (Linux, Documentation/locking/robust-futex-ABI.)
struct Lifeline {
  uint32_t word;
  uint32_t reserved[15];  // zero
};

inline constexpr uint32_t kLifelineOwnerDied = 0x40000000;  // FUTEX_OWNER_DIED
inline constexpr uint32_t kLifelineOwnerMask = 0x3fffffff;  // FUTEX_TID_MASK

constexpr bool LifelineAlive(uint32_t word) {
  return (word & kLifelineOwnerDied) == 0 && (word & kLifelineOwnerMask) != 0;
}

struct Superblock {
  RegionIdentity identity;
  uint8_t reserved0[32];
  Lifeline lifeline;
  uint8_t reserved1[832];
  uint64_t bucket_counts[kShardsMax];  // CheckedWordKind::kBucketCount, place = shard
  uint8_t reserved2[1024];
};

static_assert(std::is_standard_layout_v<Superblock> && std::has_unique_object_representations_v<Superblock>);
static_assert(sizeof(RegionIdentity) == 96 && alignof(RegionIdentity) == 8);
static_assert(offsetof(RegionIdentity, magic) == 0);
static_assert(offsetof(RegionIdentity, layout_version) == 8);
static_assert(offsetof(RegionIdentity, feature_bits) == 12);
static_assert(offsetof(RegionIdentity, incarnation) == 16);
static_assert(offsetof(RegionIdentity, region_bytes) == 24);
static_assert(offsetof(RegionIdentity, bucket_bytes) == 32);
static_assert(offsetof(RegionIdentity, shard_count) == 36);
static_assert(offsetof(RegionIdentity, directory_offset) == 40);
static_assert(offsetof(RegionIdentity, directory_entries) == 48);
static_assert(offsetof(RegionIdentity, segment_bytes) == 52);
static_assert(offsetof(RegionIdentity, created_unix_us) == 56);
static_assert(offsetof(RegionIdentity, reserved) == 64);
static_assert(offsetof(RegionIdentity, checksum) == 88);
static_assert(sizeof(Lifeline) == kCacheLineBytes);
static_assert(sizeof(Superblock) == 4096);
static_assert(offsetof(Superblock, lifeline) == 128);
static_assert(offsetof(Superblock, bucket_counts) == 1024);
static_assert(offsetof(Superblock, reserved2) == 3072);

inline constexpr RegionOffset kLifelineOffset{128};
inline constexpr RegionOffset kBucketCountsOffset{1024};

}  // namespace kvd
