// The devices that KVD_RDMA_DEVICES names are there and can carry what the suites send. The first
// of the tests that run in the guest, and the one to run first on a machine with devices of its
// own.

#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "tests/softroce/rdma_environment.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using DeviceList = std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)>;
using Context = std::unique_ptr<ibv_context, decltype(&ibv_close_device)>;

// The device with this name; null if there is none.
Context Open(const std::string& name) {
  const DeviceList devices(ibv_get_device_list(nullptr), &ibv_free_device_list);
  ibv_context* context = nullptr;
  for (ibv_device** device = devices.get(); device != nullptr && *device != nullptr; ++device) {
    if (name == ibv_get_device_name(*device)) context = ibv_open_device(*device);
  }
  return {context, &ibv_close_device};
}

TEST_CASE("Devices: each one named is there, active, and can be read from") {
  const RdmaEnvironment environment = FindRdmaEnvironment();
  if (environment.sides.empty()) KVD_SKIP("no RDMA devices: KVD_RDMA_DEVICES is not set");
  for (const RdmaSide& side : environment.sides) {
    CAPTURE(side.device);
    const Context context = Open(side.device);
    REQUIRE(context != nullptr);
    ibv_port_attr port = {};
    REQUIRE(ibv_query_port(context.get(), 1, &port) == 0);
    CHECK(port.state == IBV_PORT_ACTIVE);
    ibv_device_attr device = {};
    REQUIRE(ibv_query_device(context.get(), &device) == 0);
    CHECK(device.max_qp_rd_atom >= 1);
  }
}

TEST_CASE("Devices: the guest's have the MTU and the addresses that suites rely on") {
  const RdmaEnvironment environment = FindRdmaEnvironment();
  if (!environment.disposable) KVD_SKIP("not in the guest");
  REQUIRE(environment.sides.size() == 2);
  CHECK(environment.client().address == "10.77.0.1");
  CHECK(environment.server().address == "10.77.0.2");
  CHECK(environment.server().ipv6_address == "fd77::2");
  CHECK(environment.server().netdev == "vb");
  for (const RdmaSide& side : environment.sides) {
    const Context context = Open(side.device);
    REQUIRE(context != nullptr);
    ibv_port_attr port = {};
    REQUIRE(ibv_query_port(context.get(), 1, &port) == 0);
    CHECK(port.active_mtu == IBV_MTU_4096);
  }
}

}  // namespace
}  // namespace kvd::test
