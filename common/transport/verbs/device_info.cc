#include "common/transport/verbs/device_info.h"

#include <fcntl.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "common/base/unique_fd.h"
#include "common/transport/verbs/device_sysfs.h"
#include "common/transport/verbs/gid_info.h"

namespace kvd::verbs {
namespace {

using DeviceList = std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)>;
using OpenDevice = std::unique_ptr<ibv_context, decltype(&ibv_close_device)>;

uint32_t NotNegative(int value) { return static_cast<uint32_t>(std::max(value, 0)); }

PortState StateOf(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return PortState::kDown;
    case IBV_PORT_INIT:
      return PortState::kInit;
    case IBV_PORT_ARMED:
      return PortState::kArmed;
    case IBV_PORT_ACTIVE:
      return PortState::kActive;
    case IBV_PORT_ACTIVE_DEFER:
      return PortState::kActiveDefer;
    case IBV_PORT_NOP:
      break;
  }
  return PortState::kUnknown;
}

// The specification's PortPhysicalState (C14-24.2.1).
std::string PhysicalStateOf(uint32_t state) {
  constexpr const char* kNames[] = {"",         "Sleep",  "Polling",      "Disabled",
                                    "Training", "LinkUp", "LinkRecovery", "PhyTest"};
  return state < std::size(kNames) ? kNames[state] : "";
}

Fabric FabricOf(const ibv_device& device, const ibv_port_attr& port) {
  if (device.transport_type == IBV_TRANSPORT_IWARP) return Fabric::kIwarp;
  if (device.transport_type != IBV_TRANSPORT_IB) return Fabric::kUnknown;
  // A device from before there were link layers has InfiniBand's.
  return port.link_layer == IBV_LINK_LAYER_ETHERNET ? Fabric::kRoce : Fabric::kInfiniBand;
}

uint32_t MtuBytes(ibv_mtu mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << static_cast<uint32_t>(mtu) : 0;
}

PortFacts QueryPort(ibv_context& context, uint32_t number) {
  PortFacts facts;
  facts.number = number;
  ibv_port_attr port = {};
  if (ibv_query_port(&context, static_cast<uint8_t>(number), &port) != 0) return facts;
  facts.state = StateOf(port.state);
  facts.physical_state = PhysicalStateOf(port.phys_state);
  facts.fabric = FabricOf(*context.device, port);
  facts.active_mtu_bytes = MtuBytes(port.active_mtu);
  facts.max_mtu_bytes = MtuBytes(port.max_mtu);
  facts.speed_gbps = SpeedGbps(port.active_speed, port.active_width);
  facts.lid = facts.fabric == Fabric::kInfiniBand ? port.lid : 0;
  facts.max_message_bytes = port.max_msg_sz;
  facts.gids = QueryGids(&context, number);
  for (const GidFacts& gid : facts.gids) {
    if (facts.netdev.empty()) facts.netdev = gid.netdev;
  }
  if (facts.netdev.empty()) {
    facts.netdev = NetdevOfPort(ibv_get_device_name(context.device), number);
  }
  return facts;
}

// Why a device could not be opened. libibverbs looks in other places when it may not open the
// device's file, and leaves the error of the last of them.
int OpenErrno(const std::string& uverbs_path, int left) {
  const UniqueFd fd(::open(uverbs_path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return left != 0 ? left : EIO;
}

DeviceFacts QueryDevice(ibv_device& device) {
  DeviceFacts facts;
  facts.name = ibv_get_device_name(&device);
  facts.uverbs_path = std::string("/dev/infiniband/") + device.dev_name;
  facts.numa_node = NumaNodeOfDevice(facts.name);
  facts.is_software = IsSoftwareDevice(facts.name);
  const OpenDevice context(ibv_open_device(&device), &ibv_close_device);
  ibv_device_attr attributes = {};
  if (context == nullptr) {
    facts.open_errno = OpenErrno(facts.uverbs_path, errno);
    return facts;
  }
  if (const int error = ibv_query_device(context.get(), &attributes); error != 0) {
    facts.open_errno = error;
    return facts;
  }
  const std::string_view firmware(attributes.fw_ver, sizeof(attributes.fw_ver));
  facts.firmware = firmware.substr(0, firmware.find('\0'));
  facts.max_read_depth = NotNegative(attributes.max_qp_rd_atom);
  facts.max_initiated_read_depth = NotNegative(attributes.max_qp_init_rd_atom);
  facts.max_mr_bytes = attributes.max_mr_size;
  facts.max_qps = NotNegative(attributes.max_qp);
  facts.max_cqs = NotNegative(attributes.max_cq);
  facts.max_srqs = NotNegative(attributes.max_srq);
  for (uint32_t number = 1; number <= attributes.phys_port_cnt; ++number) {
    facts.ports.push_back(QueryPort(*context, number));
  }
  return facts;
}

}  // namespace

double SpeedGbps(uint32_t active_speed, uint32_t active_width) {
  constexpr std::pair<uint32_t, double> kLanes[] = {{1, 2.5}, {2, 5},   {4, 10},  {8, 10},
                                                    {16, 14}, {32, 25}, {64, 50}, {128, 100}};
  constexpr std::pair<uint32_t, double> kWidths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  double gbps = 0;
  for (const auto& [code, speed] : kLanes) {
    if (code == active_speed) gbps = speed;
  }
  for (const auto& [code, lanes] : kWidths) {
    if (code == active_width) return gbps * lanes;
  }
  return 0;
}

DeviceListing ListDevices() {
  DeviceListing listing;
  errno = 0;
  const DeviceList devices(ibv_get_device_list(nullptr), &ibv_free_device_list);
  if (devices == nullptr) {
    listing.list_errno = errno != 0 ? errno : ENOSYS;
    return listing;
  }
  for (ibv_device** device = devices.get(); *device != nullptr; ++device) {
    listing.devices.push_back(QueryDevice(**device));
  }
  return listing;
}

}  // namespace kvd::verbs
