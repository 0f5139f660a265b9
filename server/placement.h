// On which NUMA node the region lies, and on which processors pollers run: decided here, from plain
// values; the region and the pollers carry it out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace kvd {

// What is known of the machine.
struct NumaFacts {
  struct Node {
    int id = 0;
    std::vector<int> cpus;  // of those that this process may run on
    uint64_t bytes = 0;     // of memory, whoever has it
  };
  std::vector<Node> nodes;   // one where the kernel knows nothing of NUMA; none: unknown
  std::vector<int> allowed;  // processors that this process may run on
  int device_node = -1;      // of the RDMA device; -1: none, or it says nothing
  std::string device;        // its name, for messages
};

struct PlacementWish {
  static constexpr int kAuto = -1;
  static constexpr int kOff = -2;

  int node = kAuto;              // or a node's number
  std::vector<int> poller_cpus;  // one for each poller, in order; empty: chosen
  uint32_t pollers = 1;
  uint64_t memory_bytes = 0;
};

struct Placement {
  int node = -1;        // of the region; -1: wherever the kernel likes
  bool strict = false;  // no memory from elsewhere: the node was asked for by its number
  // For each poller the processors that it may run on; empty: any.
  std::vector<std::vector<int>> poller_cpus;
  std::vector<std::string> warnings;
};

// By default the node of the RDMA device, where the machine has several: a READ that the device
// serves from another node's memory takes longer, and takes bandwidth between nodes.
// InvalidArgument names flag, value and remedy: a node or a processor that is not there or not
// allowed, too few processors for the pollers.
absl::StatusOr<Placement> Place(const PlacementWish& wish, const NumaFacts& facts);

// For the plan and the log: "region on node 1, pollers on processors 8-15".
std::string Describe(const Placement& placement);

// "0,2,4-6". InvalidArgument: not such a list, or a number twice.
absl::StatusOr<std::vector<int>> ParseCpuList(const std::string& text);
std::string CpuListText(const std::vector<int>& cpus);

// What the kernel says, without a device.
NumaFacts GatherNumaFacts();

}  // namespace kvd
