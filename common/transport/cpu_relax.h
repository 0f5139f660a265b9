// What a thread does between two looks at memory that another CPU is about to change.
#pragma once

namespace kvd {

inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace kvd
