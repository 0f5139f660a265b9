// The sizes in which the heap gives out memory, and the spans of pages that they are cut from.
//
// Eight classes per doubling, all multiples of 8: an object wastes less than an eighth of its class
// (nothing up to 128 bytes). A span is as many pages as keep the waste at its end below a
// sixteenth, and eight objects if 64 KiB hold them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "common/layout/units.h"

namespace kvd {

inline constexpr uint32_t kSmallestObjectBytes = 32;    // an item has 24 or more
inline constexpr uint32_t kLargestObjectBytes = 32768;  // beyond it, whole pages
inline constexpr uint32_t kSizeClassCount = 5 + 9 * 8;
inline constexpr uint32_t kObjectsPerSpanMax = 128;

// The class whose objects hold `bytes`, at most kLargestObjectBytes.
constexpr uint32_t SizeClassOf(uint64_t bytes) {
  if (bytes <= kSmallestObjectBytes) return 0;
  if (bytes <= 64) return static_cast<uint32_t>((bytes - kSmallestObjectBytes + 7) / 8);
  const int log2 = std::bit_width(bytes - 1) - 1;
  const uint64_t step = uint64_t{1} << (log2 - 3);
  const uint64_t above = (bytes - (uint64_t{1} << log2) + step - 1) / step;
  return static_cast<uint32_t>(4 + static_cast<uint64_t>(log2 - 6) * 8 + above);
}

constexpr uint32_t ObjectBytes(uint32_t size_class) {
  if (size_class < 5) return kSmallestObjectBytes + 8 * size_class;
  const uint32_t doubling = (size_class - 5) / 8;
  return (64u << doubling) + ((size_class - 5) % 8 + 1) * (8u << doubling);
}

// Classes in groups of one doubling, for people: objects of up to 64 bytes, up to 128 ... up to
// 32 KiB, and whole pages.
inline constexpr uint32_t kSizeGroupCount = 11;
constexpr uint32_t SizeGroupOf(uint32_t size_class) {
  return size_class < 5 ? 0 : 1 + (size_class - 5) / 8;
}

namespace internal {

constexpr uint32_t ChooseSpanPages(uint32_t object_bytes) {
  uint32_t pages = (8 * object_bytes + kPageBytes - 1) / kPageBytes;
  if (pages > 16) pages = 16;
  uint32_t best = pages;
  for (uint32_t more = pages; more <= 32; ++more) {
    const uint32_t waste = more * kPageBytes % object_bytes;
    if (waste * 16 <= more * kPageBytes) return more;
    // Compares the wasted shares waste / pages without dividing.
    if (waste * best < best * kPageBytes % object_bytes * more) best = more;
  }
  return best;
}

constexpr std::array<uint32_t, kSizeClassCount> MakeSpanPages() {
  std::array<uint32_t, kSizeClassCount> pages{};
  for (uint32_t i = 0; i < kSizeClassCount; ++i) pages[i] = ChooseSpanPages(ObjectBytes(i));
  return pages;
}

}  // namespace internal

inline constexpr std::array<uint32_t, kSizeClassCount> kSpanPages = internal::MakeSpanPages();

constexpr uint32_t ObjectsPerSpan(uint32_t size_class) {
  return kSpanPages[size_class] * kPageBytes / ObjectBytes(size_class);
}

static_assert(SizeClassOf(kLargestObjectBytes) == kSizeClassCount - 1);
static_assert(ObjectBytes(kSizeClassCount - 1) == kLargestObjectBytes);
static_assert(ObjectsPerSpan(0) == kObjectsPerSpanMax);

}  // namespace kvd
