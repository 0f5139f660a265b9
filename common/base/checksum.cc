#include "common/base/checksum.h"

#include "common/base/checksum_variants.h"

namespace kvd::internal {
namespace {

ChecksumFunction* Choose() {
#if defined(__x86_64__)
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
