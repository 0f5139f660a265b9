// The rows of the table in local_check.h. Each appends what it has to say.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/transport/verbs/local_check.h"

namespace kvd::verbs {

using CheckResults = std::vector<CheckResult>;

// False: there is no device, so nothing further can be said of any.
bool CheckDevices(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results);
void CheckDeviceFiles(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results);
void CheckMemlock(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results);
void CheckRegionSize(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results);
void CheckPorts(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results);
void CheckAddress(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results);
void CheckNamespace(const LocalFacts& facts, CheckResults& results);

// How bad it is that RDMA cannot be had.
inline CheckOutcome Obstacle(const LocalNeeds& needs) {
  return needs.rdma_required ? CheckOutcome::kFailed : CheckOutcome::kWarning;
}

// The devices that come into question: all, or the one that is named.
inline bool IsConsidered(const DeviceFacts& device, const LocalNeeds& needs) {
  return needs.device.empty() || device.name == needs.device;
}

// Of the kernel's network devices the first that is not the loopback, to show in a command.
std::string ExampleNetdev(const LocalFacts& facts);

// "modprobe rdma_rxe; rdma link add ...".
std::string SoftRoceCommands(const LocalFacts& facts);

}  // namespace kvd::verbs
