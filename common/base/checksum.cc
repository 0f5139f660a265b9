#include "common/base/checksum.h"

#include "common/base/checksum_variants.h"

// A sanitizer sees the accesses of the baseline alone; the others are compiled without.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KVD_CHECKSUM_BASELINE_ONLY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KVD_CHECKSUM_BASELINE_ONLY 1
#endif
#endif

namespace kvd::internal {
namespace {

ChecksumFunction* Choose() {
#if defined(__x86_64__) && !defined(KVD_CHECKSUM_BASELINE_ONLY)
  __builtin_cpu_init();
  // VBMI stands for the generations (Ice Lake, Zen 4) that no longer lower their clock for AVX-512.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vbmi")) {
    return Checksum64Avx512;
  }
  if (__builtin_cpu_supports("avx2")) return Checksum64Avx2;
#endif
  return Checksum64Baseline;
}

}  // namespace

uint64_t Checksum64Long(const void* data, size_t len_bytes, uint64_t seed) {
  static ChecksumFunction* const chosen = Choose();
  return chosen(data, len_bytes, seed);
}

}  // namespace kvd::internal
