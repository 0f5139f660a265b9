// Distinct types and fixed sizes of the region, so that an offset cannot be mistaken for a length.
#pragma once

#include <cstdint>

namespace kvd {

// A byte offset from the start of the region. Zero lies in the superblock, so no item or bucket is ever at zero.
enum class RegionOffset : uint64_t {};

constexpr uint64_t ToBytes(RegionOffset offset) { return static_cast<uint64_t>(offset); }
constexpr RegionOffset operator+(RegionOffset offset, uint64_t bytes) {
  return RegionOffset{static_cast<uint64_t>(offset) + bytes};
}

// The number of a bucket inside its shard.
enum class BucketIndex : uint32_t {};
constexpr uint32_t ToNumber(BucketIndex index) { return static_cast<uint32_t>(index); }

inline constexpr uint32_t kSegmentBytes = 1u << 20;      // unit in which index and heap draw space
inline constexpr uint32_t kPageBytes = 4096;             // unit of the region's page allocator
inline constexpr uint32_t kCacheLineBytes = 64;
inline constexpr uint32_t kLocationUnitBytes = 8;        // alignment of every item and overflow header
inline constexpr uint32_t kShardsMax = 256;
inline constexpr uint32_t kKeyBytesMax = 4096;           // longest key; shortest is 1
inline constexpr uint32_t kBucketBytesMin = 512;         // powers of two only
inline constexpr uint32_t kBucketBytesMax = 4096;
inline constexpr uint32_t kBucketBytesDefault = 1024;

}  // namespace kvd
