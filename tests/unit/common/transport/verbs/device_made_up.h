// A machine with two Soft-RoCE devices on which all is well, for tests to break.
#pragma once

#include "common/transport/verbs/local_check_facts.h"

namespace kvd::verbs::test {

inline DeviceFacts MakeDevice(const std::string& name, const std::string& netdev,
                              const std::string& address) {
  PortFacts port;
  port.state = PortState::kActive;
  port.physical_state = "LinkUp";
  port.fabric = Fabric::kRoce;
  port.netdev = netdev;
  port.active_mtu_bytes = 1024;
  port.max_mtu_bytes = 4096;
  port.speed_gbps = 25;
  port.max_message_bytes = uint64_t{8} << 20;
  port.gids = {{0, GidType::kRoceV2, "fe80::1", netdev, true},
               {1, GidType::kRoceV2, address, netdev, false}};
  DeviceFacts device;
  device.name = name;
  device.uverbs_path = "/dev/infiniband/" + name + "_uverbs";
  device.is_software = true;
  device.max_read_depth = device.max_initiated_read_depth = 128;
  device.max_mr_bytes = UINT64_MAX;
  device.ports = {port};
  return device;
}

inline LocalFacts MakeFacts() {
  LocalFacts facts;
  facts.listing.devices = {MakeDevice("rxea", "va", "10.77.0.1"),
                           MakeDevice("rxeb", "vb", "10.77.0.2")};
  facts.kernel_devices = facts.uverbs_devices = {"rxea", "rxeb"};
  facts.device_files = {{"/dev/infiniband/rxea_uverbs", 0},
                        {"/dev/infiniband/rxeb_uverbs", 0},
                        {"/dev/infiniband/rdma_cm", 0}};
  facts.namespace_mode = NamespaceMode::kShared;
  facts.addresses = {{"lo", "127.0.0.1", true},  {"eth0", "192.0.2.5", false},
                     {"va", "10.77.0.1", false}, {"va", "fe80::1", false},
                     {"vb", "10.77.0.2", false}, {"vb", "fe80::2", false}};
  facts.hugepages_total = facts.hugepages_free = 64;
  return facts;
}

}  // namespace kvd::verbs::test
