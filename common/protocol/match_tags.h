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
  // SSE2, which every x86-64 has. A tag lies in the upper half of a slot: those of four slots side
  // by side.
  const __m128i mask = _mm_set1_epi32(static_cast<int32_t>(kSlotTagMask >> 32));
  const __m128i wanted = _mm_set1_epi32(static_cast<int32_t>(tag << (kSlotTagShift - 32)));
  static_assert(kSlotsPerHeader % 4 == 0);
  for (uint32_t i = 0; i < kSlotsPerHeader; i += 4) {
    const __m128 low = _mm_loadu_ps(reinterpret_cast<const float*>(slots + i));
    const __m128 high = _mm_loadu_ps(reinterpret_cast<const float*>(slots + i + 2));
    const __m128i upper = _mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd));
    const __m128i equal = _mm_cmpeq_epi32(_mm_and_si128(upper, mask), wanted);
    matches |= static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(equal))) << i;
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
