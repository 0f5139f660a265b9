// The one way to read memory that another process may be writing: copy it once, then look only at the copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(__SANITIZE_THREAD__)
#define KVD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KVD_TSAN 1
#endif
#endif

namespace kvd {

// Copies `bytes` bytes (a multiple of 8) from `from` (8-byte aligned) to `to`. Each aligned 8-byte word is loaded
// whole and once; nothing is promised about the order of words, so the copy must carry a checksum that is verified
// before its content is believed. Loads are relaxed: an acquire that the caller needs stands with the caller.
inline void RacyCopy(void* to, const void* from, size_t bytes) {
#if defined(KVD_TSAN)
  const auto* source = static_cast<const uint64_t*>(from);
  for (size_t i = 0; i < bytes / 8; ++i) {
    const uint64_t word = __atomic_load_n(source + i, __ATOMIC_RELAXED);
    std::memcpy(static_cast<char*>(to) + i * 8, &word, 8);
  }
#elif defined(__SSE2__)
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (bytes <= 1024) {
    // 16-byte stores, so that the wide loads of the checksum that follows are served from the store buffer.
    size_t done = 0;
    for (; done + 16 <= bytes; done += 16) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(target + done),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + done)));
    }
    if (done < bytes) std::memcpy(target + done, source + done, 8);
  } else {
    std::memcpy(to, from, bytes);
  }
  // Keeps the compiler from going back to `from` for what it has already copied.
  asm volatile("" ::: "memory");
#else
  std::memcpy(to, from, bytes);
  asm volatile("" ::: "memory");
#endif
}

// Everything loaded before this is loaded before anything that is loaded after it. (Thread sanitizers know no fences;
// under them all loads here are atomics of their own, and no weaker machine is tested.)
inline void LoadFence() {
#if defined(KVD_TSAN)
  asm volatile("" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

// One word that a peer may change, loaded whole.
inline uint64_t RacyLoad64(const void* from) {
  return __atomic_load_n(static_cast<const uint64_t*>(from), __ATOMIC_RELAXED);
}

}  // namespace kvd
