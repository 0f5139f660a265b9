// Processor time as servers tell it.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "absl/strings/numbers.h"
#include "client/bench/kvbench/store.h"

namespace kvd::bench {

// The sum of two statistics in seconds, as microseconds; below 0 if one is missing.
inline int64_t CpuUsOf(const Store::Statistics& statistics, std::string_view user,
                       std::string_view system) {
  double seconds = 0;
  int found = 0;
  for (const auto& [name, value] : statistics) {
    double part = 0;
    if ((name != user && name != system) || !absl::SimpleAtod(value, &part)) continue;
    seconds += part;
    ++found;
  }
  return found == 2 ? std::llround(seconds * 1e6) : -1;
}

}  // namespace kvd::bench
