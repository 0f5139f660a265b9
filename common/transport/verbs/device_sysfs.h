// What the kernel says of RDMA devices in /sys, besides what they say themselves. `root` stands
// before every path, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvd::verbs {

// Devices in /sys/class/infiniband, sorted: also those that no provider of libibverbs knows.
std::vector<std::string> KernelDevices(const std::string& root = "");

// Of those, the ones that programs can open: they have an entry in /sys/class/infiniband_verbs,
// which needs the module ib_uverbs.
std::vector<std::string> UverbsDevices(const std::string& root = "");

// The network device of a port; empty: none, or one in another network namespace.
std::string NetdevOfPort(const std::string& device, uint32_t port, const std::string& root = "");

// -1: none.
int NumaNodeOfDevice(const std::string& device, const std::string& root = "");

// No hardware of its own below it.
bool IsSoftwareDevice(const std::string& device, const std::string& root = "");

}  // namespace kvd::verbs
