// Where the time of one request goes that is not answered in the step in which it came.
#pragma once

#include <cstdint>

namespace kvd {

// Monotonic times. What is in none of the phases, the request waited.
struct RequestTiming {
  int64_t taken_ns = 0;  // by its home
  int64_t pulling_ns = 0;
  int64_t evicting_ns = 0;
  int64_t executing_ns = 0;  // without evicting
};

}  // namespace kvd
