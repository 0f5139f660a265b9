// How much memory this machine, or the container it seems to be, can give.
#pragma once

#include <cstdint>
#include <string>

namespace kvd {

struct MachineMemory {
  uint64_t total_bytes = 0;           // of the machine
  uint64_t available_bytes = 0;       // without swapping, as the kernel estimates it (MemAvailable)
  uint64_t limit_bytes = UINT64_MAX;  // the tightest memory limit of this process's control groups
  uint64_t limit_used_bytes = 0;      // what is already charged against that limit
  std::string limit_name;             // the file that says so; empty if there is no limit

  // What one allocation of ordinary pages can have at most.
  uint64_t usable_bytes() const;
  // "available: 22 GiB of 23 GiB" or "left of the limit in FILE: ...", for a message.
  std::string Describe() const;
};

// Reads /proc and /sys/fs/cgroup (both versions). `root` stands before every path, for tests. What
// cannot be read is taken as no limit; a machine whose /proc/meminfo cannot be read has total_bytes
// 0 and no limit.
MachineMemory ReadMachineMemory(const std::string& root = "");

// Memory of one NUMA node.
struct NodeMemory {
  uint64_t total_bytes = 0;      // 0: the kernel tells of no such node
  uint64_t available_bytes = 0;  // free, or of files that the kernel can drop
};
NodeMemory ReadNodeMemory(int node, const std::string& root = "");

// Free pages of `page_bytes` in that node's part of the kernel's pool, whoever has reserved them.
uint64_t FreeHugepagesOfNode(int node, uint64_t page_bytes, const std::string& root = "");

// Free pages of `page_bytes` in the kernel's pool, also those that it may still take beyond it
// (overcommit).
uint64_t FreeHugepages(uint64_t page_bytes, const std::string& root = "");

// Whether the kernel gives transparent huge pages to shared memory that asks for them.
bool TransparentHugepagesForSharedMemory(const std::string& root = "");

}  // namespace kvd
