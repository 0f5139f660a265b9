// What long values add to a deadline that was not chosen for them.
#pragma once

#include <cstdint>

namespace kvd {

// A client's own deadline is for operations of any size, so it is for what the value takes besides: a second for each
// 32 MiB, which an Ethernet of 1 Gbit/s carries well within it; nothing for the first 16 MiB.
inline int64_t TransferAllowanceNs(uint64_t value_bytes) {
  constexpr uint64_t kFreeBytes = uint64_t{16} << 20;
  constexpr uint64_t kBytesPerMs = (uint64_t{32} << 20) / 1000;
  if (value_bytes <= kFreeBytes) return 0;
  return static_cast<int64_t>((value_bytes - kFreeBytes) / kBytesPerMs) * 1'000'000;
}

}  // namespace kvd
