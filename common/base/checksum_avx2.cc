#include "common/base/checksum_variants.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kvd::internal {

uint64_t Checksum64Avx2(const void* data, size_t len_bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(data, len_bytes, seed);
}

}  // namespace kvd::internal
