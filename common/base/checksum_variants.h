// The implementations among which checksum.cc chooses; for it, its test and its benchmark only.
//
// Each is a file of its own, compiled for one instruction set. Such a file includes nothing but
// xxhash.h and this header: an inline function compiled there with external linkage could become
// the one copy that the linker keeps, and crash an older CPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvd::internal {

using ChecksumFunction = uint64_t(const void* data, size_t len_bytes, uint64_t seed);

ChecksumFunction Checksum64Baseline;
#if defined(__x86_64__)
ChecksumFunction Checksum64Avx2;
ChecksumFunction Checksum64Avx512;
#endif

}  // namespace kvd::internal
