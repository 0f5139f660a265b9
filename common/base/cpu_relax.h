// What a spinning thread says to its processor.
#pragma once

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace kvd {

// Tells the processor that this is a spin loop: saves power and lets a sibling thread run. Some tens of nanoseconds.
inline void CpuRelax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace kvd
