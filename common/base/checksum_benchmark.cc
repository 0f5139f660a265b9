// Checksum64, its variants, and the CRCs of ISA-L as the alternative, from 64 bytes to 4 MiB.
#include <benchmark/benchmark.h>
#include <isa-l.h>

#include <cstdint>
#include <vector>

#include "common/base/checksum.h"
#include "common/base/checksum_variants.h"

namespace kvd {
namespace {

uint64_t Dispatched(const void* data, size_t len_bytes, uint64_t seed) {
  return Checksum64(data, len_bytes, seed);
}

uint64_t IsalCrc64(const void* data, size_t len_bytes, uint64_t seed) {
  return crc64_ecma_refl(seed, static_cast<const unsigned char*>(data), len_bytes);
}

uint64_t IsalCrc32c(const void* data, size_t len_bytes, uint64_t seed) {
  // ISA-L takes the buffer as non-const and only reads it.
  auto* const bytes = static_cast<unsigned char*>(const_cast<void*>(data));
  return crc32_iscsi(bytes, static_cast<int>(len_bytes), static_cast<unsigned>(seed));
}

// Each result is the next seed, so this is latency, as a reader that waits for the answer sees it.
template <internal::ChecksumFunction kFunction>
void BM_Checksum(benchmark::State& state) {
  const std::vector<unsigned char> data(static_cast<size_t>(state.range(0)), 0x5A);
  uint64_t value = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(value = kFunction(data.data(), data.size(), value));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

#define KVD_SIZES Arg(64)->Arg(128)->Arg(256)->Arg(1024)->Arg(4096)->Arg(65536)->Arg(4 << 20)

BENCHMARK_TEMPLATE(BM_Checksum, Dispatched)->KVD_SIZES;
BENCHMARK_TEMPLATE(BM_Checksum, internal::Checksum64Baseline)->KVD_SIZES;
#if defined(__x86_64__)  // needs a CPU with both
BENCHMARK_TEMPLATE(BM_Checksum, internal::Checksum64Avx2)->KVD_SIZES;
BENCHMARK_TEMPLATE(BM_Checksum, internal::Checksum64Avx512)->KVD_SIZES;
#endif
BENCHMARK_TEMPLATE(BM_Checksum, IsalCrc64)->KVD_SIZES;
BENCHMARK_TEMPLATE(BM_Checksum, IsalCrc32c)->KVD_SIZES;

}  // namespace
}  // namespace kvd
