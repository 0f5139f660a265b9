// What an RDMA device has counted at its port, as the kernel shows it under /sys/class/infiniband.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/statistic_list.h"

namespace kvd {

// Adds the errors and the traffic that the device counts, of a fixed set of names: devices have
// some of them each, and some have none. They are the port's, whoever caused them, from when the
// driver was loaded on. Reads a few small files. `root` stands before every path, for tests.
void AddPortCounters(const std::string& device, uint64_t port, StatisticList& list,
                     const std::string& root = "");

}  // namespace kvd
