// The doctor's checks of a server: values of every size are put, read back one-sidedly and compared
// byte by byte, and how long that took is set against what is usual.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "client/cli/doctor_report.h"
#include "client/cli/store.h"
#include "common/base/clock.h"

namespace kvd::cli {

// Above this, the median of an operation is worth a warning.
struct ExpectedTime {
  double base_us = 0;
  double bytes_per_us = 1;

  double ForBytes(uint64_t bytes) const {
    return base_us + static_cast<double>(bytes) / bytes_per_us;
  }
};

struct ExpectedTimes {
  ExpectedTime read;
  ExpectedTime put;
};

// By how the server is reached: loads, RDMA hardware of that speed (0: unknown), or RDMA that is
// made in software.
ExpectedTimes ExpectedOverSharedMemory();
ExpectedTimes ExpectedOverRdma(double speed_gbps);
ExpectedTimes ExpectedOverSoftRdma();

struct ServerCheckOptions {
  // Random: keys are this prefix and a size. Nobody else's keys begin with it.
  std::string key_prefix;
  uint64_t seed = 0;  // of the values
  ExpectedTimes expected;
  std::function<bool()> interrupted;
};

// Adds a line for admission and one a size and kind of operation. Leaves no key behind unless the
// server fails in between, which is said. Stops at the first error after which no other check makes
// sense, or when interrupted.
void CheckServer(KeyValueStore& store, const Clock& clock, const ServerCheckOptions& options,
                 DoctorReport& report);

}  // namespace kvd::cli
