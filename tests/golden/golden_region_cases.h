// The golden cases of what lies in the region, and what those of the wire share with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/golden/golden_cases.h"

namespace kvd::test {

inline constexpr uint64_t kIncarnation = 0x0123456789abcdef;
inline constexpr uint64_t kRegionBytes = uint64_t{64} << 20;
inline constexpr uint32_t kBucketBytes = 1024;
inline constexpr uint32_t kShards = 2;
inline constexpr uint32_t kDirectoryEntries = 8;

template <typename T>
std::string BytesOf(const T& object) {
  return std::string(reinterpret_cast<const char*>(&object), sizeof(object));
}

// Superblock, directory, buckets, items.
void AddRegionCases(std::vector<GoldenCase>& cases);

}  // namespace kvd::test
