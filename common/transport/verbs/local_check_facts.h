// What the local checks look at, besides the devices themselves: gathered once, then judged by the
// pure functions of local_check.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/machine_memory.h"
#include "common/transport/verbs/device_info.h"

namespace kvd::verbs {

// Whether a device file could be opened for reading and writing.
struct FileAccess {
  std::string path;
  int error_number = 0;  // 0: it could
};

// How the kernel shares RDMA devices among network namespaces (`rdma system show`).
enum class NamespaceMode { kUnknown, kShared, kExclusive };

struct InterfaceAddress {
  std::string netdev;
  std::string address;  // without a zone
  bool is_loopback = false;
};

// 2 MiB pages of one NUMA node.
struct NodeHugepages {
  uint32_t node = 0;
  uint64_t total = 0;
  uint64_t free = 0;
};

struct LocalFacts {
  DeviceListing listing;
  std::vector<std::string> kernel_devices;  // in /sys/class/infiniband
  std::vector<std::string> uverbs_devices;  // of those, with an entry for programs
  std::vector<FileAccess> device_files;     // of every device, and rdma_cm if there is a device
  bool has_device_directory = true;         // /dev/infiniband, where device files lie
  NamespaceMode namespace_mode = NamespaceMode::kUnknown;
  std::vector<InterfaceAddress> addresses;

  MachineMemory memory;
  uint64_t memlock_limit_bytes = UINT64_MAX;  // the hard limit, up to which a process can go
  bool memlock_unlimited = false;             // CAP_IPC_LOCK, which the limit does not bind

  uint64_t hugepages_total = 0;  // of 2 MiB, in the kernel's pool
  uint64_t hugepages_free = 0;   // not reserved by others, and what may be taken on demand
  std::vector<NodeHugepages> hugepage_nodes;
  uint64_t gigantic_free = 0;  // of 1 GiB
};

// Opens each device file for a moment. Any thread; some milliseconds.
LocalFacts GatherLocalFacts();

}  // namespace kvd::verbs
