// What is known of a machine's RDMA devices: plain values, gathered by device_info.h, so that
// whatever decides by them can be tested without a device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvd::verbs {

// What a port speaks, as the device reports it.
enum class Fabric { kUnknown, kInfiniBand, kRoce, kIwarp };

// In the order in which RDMA gives them numbers.
enum class PortState { kUnknown, kDown, kInit, kArmed, kActive, kActiveDefer };

enum class GidType { kUnknown, kInfiniBand, kRoceV1, kRoceV2 };

struct GidFacts {
  uint32_t index = 0;
  GidType type = GidType::kUnknown;
  std::string address;         // "10.77.0.1", "fe80::1": IPv4 where the GID holds a mapped one
  std::string netdev;          // empty: none, or in another network namespace
  bool is_link_local = false;  // fe80::/10: usable within one link only
};

struct PortFacts {
  uint32_t number = 1;
  PortState state = PortState::kUnknown;
  std::string physical_state;  // "LinkUp", "Disabled"; empty: unknown
  Fabric fabric = Fabric::kUnknown;
  std::string netdev;             // empty: none, or in another network namespace
  uint32_t active_mtu_bytes = 0;  // 0: unknown
  uint32_t max_mtu_bytes = 0;
  double speed_gbps = 0;  // 0: unknown
  uint32_t lid = 0;       // InfiniBand only
  uint64_t max_message_bytes = 0;
  std::vector<GidFacts> gids;  // those that are set

  bool active() const { return state == PortState::kActive; }
};

struct DeviceFacts {
  std::string name;             // "mlx5_0"
  std::string uverbs_path;      // "/dev/infiniband/uverbs0"
  int open_errno = 0;           // not 0: could not be opened, and nothing below is known
  std::string firmware;         // empty: none
  int numa_node = -1;           // -1: none
  bool is_software = false;     // made by a driver on top of a network device: Soft-RoCE, siw
  uint32_t max_read_depth = 0;  // READs outstanding as their target, per QP
  uint32_t max_initiated_read_depth = 0;  // READs outstanding as their initiator, per QP
  uint64_t max_mr_bytes = 0;
  uint32_t max_qps = 0;
  uint32_t max_cqs = 0;
  uint32_t max_srqs = 0;
  std::vector<PortFacts> ports;
};

// What is printed for a value; "unknown" for what is none of the enum's.
std::string_view NameOf(Fabric fabric);
std::string_view NameOf(PortState state);
std::string_view NameOf(GidType type);

}  // namespace kvd::verbs
