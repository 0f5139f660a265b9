// What a spinning thread says to its processor.
#pragma once

#include <sched.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace kvd {

// Tells the processor that this is a spin loop: saves power and lets a sibling thread run. Some
// tens of nanoseconds.
inline void CpuRelax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Lets whoever waits for this core run; returns at once if nobody does. A spin loop says it every
// microsecond or so: where there are more threads than cores, what it waits for may have to run
// here, and would otherwise wait until the kernel takes the core away, a thousand times as long.
inline void OfferCore() { sched_yield(); }

}  // namespace kvd
