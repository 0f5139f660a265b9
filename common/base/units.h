// Sizes as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvd {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;
inline constexpr uint64_t kTiB = uint64_t{1} << 40;

// Bytes of "4g", "64M", "512k", "1t" or "1048576": digits and at most one suffix, a power of 1024.
// INVALID_ARGUMENT for anything else and OUT_OF_RANGE from 2^64 on; both name `text` and the form.
absl::StatusOr<uint64_t> ParseBytes(std::string_view text);

// "64 MiB", "1.5 GiB", "100 B": the largest unit that is at least 1, with one decimal if needed.
std::string FormatBytes(uint64_t size_bytes);

}  // namespace kvd
