// By which key RDMA clients read the region.
#pragma once

#include <cstdint>

namespace kvd {

enum class WindowPolicy : uint8_t {
  kPrefer,   // a memory window of each session's own, where the device has them
  kRequire,  // or kvd does not start
  kOff,      // the region's key, for all
};

}  // namespace kvd
