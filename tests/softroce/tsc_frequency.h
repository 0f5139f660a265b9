// How fast this machine's time stamp counter runs. An emulated guest has the host's counter, and
// cannot find out by itself on a host with other work to do.
#pragma once

#include <cstdint>

namespace kvd::softroce {

// Measures against the monotonic clock, for some hundredths of a second.
uint64_t MeasureTsc_khz();

}  // namespace kvd::softroce
