#include "server/store/local_space.h"

#include <algorithm>
#include <bit>

namespace kvd {

void LocalSpace::MarkWordsUsed(uint64_t first, uint64_t count) {
  for (const uint64_t end = first + count; first < end;) {
    const uint64_t bit = first % 64;
    const uint64_t of_word = std::min(end - first, 64 - bit);
    used_[first / 64] |= (~uint64_t{0} >> (64 - of_word)) << bit;
    first += of_word;
  }
}

void LocalSpace::MarkFree(RegionOffset location, uint64_t bytes) {
  const uint64_t first = (ToBytes(location) - begin_) / kLocationUnitBytes;
  for (uint64_t unit = first; unit < first + bytes / kLocationUnitBytes; ++unit) {
    used_[unit / 64] &= ~(uint64_t{1} << unit % 64);
  }
}

bool LocalSpace::Overlaps(RegionOffset location, uint64_t bytes) const {
  const uint32_t first = static_cast<uint32_t>((ToBytes(location) - begin_) / kLocationUnitBytes);
  return NextUsed(first) < first + bytes / kLocationUnitBytes;
}

uint32_t LocalSpace::Next(uint32_t unit, uint64_t flip) const {
  while (unit < units_) {
    const uint64_t rest = (used_[unit / 64] ^ flip) >> (unit % 64);
    if (rest != 0) return std::min(units_, unit + static_cast<uint32_t>(std::countr_zero(rest)));
    unit = (unit / 64 + 1) * 64;
  }
  return units_;
}

std::optional<RegionOffset> LocalSpace::Take(uint64_t bytes) {
  const uint64_t wanted = bytes / kLocationUnitBytes;
  for (uint32_t first = NextFree(0); first + wanted <= units_;) {
    const uint32_t end = NextUsed(first);
    if (end - first >= wanted) {
      const RegionOffset location{begin_ + uint64_t{first} * kLocationUnitBytes};
      MarkUsed(location, bytes);
      return location;
    }
    first = NextFree(end);
  }
  return std::nullopt;
}

uint64_t LocalSpace::used_bytes() const {
  uint64_t units = 0;
  for (const uint64_t word : used_) units += static_cast<uint64_t>(std::popcount(word));
  return units * kLocationUnitBytes;
}

}  // namespace kvd
