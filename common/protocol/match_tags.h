// Which slots of a header may hold a key.
#pragma once

#include <bit>
#include <cstdint>

#include "common/layout/bucket.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace kvd {

// A bit for each slot whose tag is `tag`; empty slots excluded.
[[gnu::always_inline]] inline uint32_t MatchTags(const Slot (&slots)[kSlotsPerHeader],
                                                 uint32_t tag) {
  uint32_t matches = 0;
#if defined(__SSE2__)
  // SSE2, which every x86-64 has, compares 32 bits: a word is equal if both of its halves are.
  const __m128i mask = _mm_set1_epi64x(static_cast<int64_t>(kSlotTagMask));
  const __m128i wanted = _mm_set1_epi64x(static_cast<int64_t>(uint64_t{tag} << kSlotTagShift));
  for (uint32_t i = 0; i < kSlotsPerHeader; i += 2) {
    const __m128i pair = _mm_loadu_si128(reinterpret_cast<const __m128i*>(slots + i));
    const __m128i halves = _mm_cmpeq_epi32(_mm_and_si128(pair, mask), wanted);
    const __m128i equal = _mm_and_si128(halves, _mm_shuffle_epi32(halves, 0xb1));
    matches |= static_cast<uint32_t>(_mm_movemask_pd(_mm_castsi128_pd(equal))) << i;
  }
#else
  for (uint32_t i = 0; i < kSlotsPerHeader; ++i) {
    matches |= (TagOf(slots[i]) == tag ? 1u : 0u) << i;
  }
#endif
  if (tag == 0) {
    for (uint32_t rest = matches; rest != 0; rest &= rest - 1) {
      const int i = std::countr_zero(rest);
      if (slots[i] == kEmptySlot) matches &= ~(1u << i);
    }
  }
  return matches;
}

}  // namespace kvd
