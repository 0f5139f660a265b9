// The RDMA devices of this machine, as ibv_devinfo and `rdma link` would show them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/transport/verbs/device_facts.h"

namespace kvd::verbs {

struct DeviceListing {
  // Not 0: libibverbs gave no list. ENOSYS: the kernel has no RDMA, or ib_uverbs is not loaded.
  int list_errno = 0;
  std::vector<DeviceFacts> devices;  // in libibverbs' order
};

// Opens every device, asks it and closes it again; one that cannot be opened is listed with its
// open_errno. Any thread; blocks for the devices' answers, some milliseconds.
DeviceListing ListDevices();

// Gb/s of a port by the codes of ibv_port_attr, 0 for codes that have no meaning.
double SpeedGbps(uint32_t active_speed, uint32_t active_width);

}  // namespace kvd::verbs
