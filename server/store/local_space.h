// Which part of a bucket's local space is free. Derived from the bucket's slots whenever it is
// needed; nothing is kept.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/base/check.h"
#include "common/layout/bucket.h"
#include "common/layout/units.h"

namespace kvd {

// The largest item that may lie in its bucket: a third of the local space, so that one item does
// not drive out all.
constexpr uint64_t LocalItemBytesMax(uint32_t bucket_bytes) {
  return (bucket_bytes - kBucketHeaderBytes) / 3 / kLocationUnitBytes * kLocationUnitBytes;
}

class LocalSpace {
 public:
  // All free, at first.
  LocalSpace(RegionOffset bucket, uint32_t bucket_bytes)
      : begin_(ToBytes(bucket) + kBucketHeaderBytes),
        units_((bucket_bytes - kBucketHeaderBytes) / kLocationUnitBytes) {}

  bool Contains(RegionOffset location) const {
    return ToBytes(location) >= begin_ &&
           ToBytes(location) < begin_ + uint64_t{units_} * kLocationUnitBytes;
  }

  // [location, location + bytes) lies in the local space and is not empty.
  void MarkUsed(RegionOffset location, uint64_t bytes) {
    const uint64_t first = (ToBytes(location) - begin_) / kLocationUnitBytes;
    const uint64_t count = bytes / kLocationUnitBytes;
    KVD_CHECK(first < units_ && count <= units_ - first);
    const uint64_t bit = first % 64;
    if (bit + count > 64) [[unlikely]]
      return MarkWordsUsed(first, count);
    used_[first / 64] |= (~uint64_t{0} >> (64 - count)) << bit;
  }

  // The inverse.
  void MarkFree(RegionOffset location, uint64_t bytes);

  // Whether any of [location, location + bytes) is used.
  bool Overlaps(RegionOffset location, uint64_t bytes) const;

  // The first free run that is long enough, which is used from now on.
  std::optional<RegionOffset> Take(uint64_t bytes);

  uint64_t used_bytes() const;

 private:
  static constexpr uint32_t kUnitsMax = (kBucketBytesMax - kBucketHeaderBytes) / kLocationUnitBytes;

  void MarkWordsUsed(uint64_t first, uint64_t count);
  // The first unit from `unit` on that is used, or free, as asked; units_ if there is none.
  uint32_t NextUsed(uint32_t unit) const { return Next(unit, 0); }
  uint32_t NextFree(uint32_t unit) const { return Next(unit, ~uint64_t{0}); }
  uint32_t Next(uint32_t unit, uint64_t flip) const;

  uint64_t begin_;
  uint32_t units_;
  std::array<uint64_t, (kUnitsMax + 63) / 64> used_{};
};

}  // namespace kvd
