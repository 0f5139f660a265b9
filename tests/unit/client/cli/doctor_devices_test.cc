// What devices prints, of made-up devices; and doctor and devices as commands on this machine,
// whatever it has.
#include <nlohmann/json.hpp>

#include "client/cli/devices_text.h"
#include "common/transport/verbs/device_sysfs.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

using nlohmann::json;
using verbs::DeviceFacts;
using verbs::PortFacts;

std::vector<DeviceFacts> MakeDevices() {
  PortFacts port;
  port.state = verbs::PortState::kActive;
  port.physical_state = "LinkUp";
  port.fabric = verbs::Fabric::kRoce;
  port.netdev = "eth2";
  port.active_mtu_bytes = 1024;
  port.max_mtu_bytes = 4096;
  port.speed_gbps = 100;
  port.max_message_bytes = uint64_t{1} << 31;
  port.gids = {{1, verbs::GidType::kRoceV1, "fe80::1", "eth2", true},
               {3, verbs::GidType::kRoceV2, "192.0.2.7", "eth2", false}};
  DeviceFacts device;
  device.name = "mlx5_0";
  device.firmware = "22.31.1014";
  device.numa_node = 1;
  device.max_read_depth = 16;
  device.max_initiated_read_depth = 8;
  device.max_mr_bytes = UINT64_MAX;
  device.ports = {port};
  DeviceFacts closed;
  closed.name = "mlx5_1";
  closed.uverbs_path = "/dev/infiniband/uverbs1";
  closed.open_errno = EACCES;
  return {device, closed};
}

TEST_CASE("Devices: lines for people") {
  const std::string text = FormatDevices(OutputFormat::kSimple, MakeDevices());
  INFO(text);
  for (const char* part : {"mlx5_0\n", "ACTIVE, RoCE, eth2, MTU 1024 of 4096, 100 Gb/s", "GID 3",
                           "192.0.2.7 (RoCE v2)", "fe80::1 (RoCE v1, link-local)", "up to 2 GiB",
                           "no limit", "16 as target, 8 as initiator", "22.31.1014",
                           "open /dev/infiniband/uverbs1: Permission denied (errno 13)"}) {
    CHECK_THAT(text, Catch::Contains(part));
  }
}

TEST_CASE("Devices: a table with a row a GID") {
  const std::string text = FormatDevices(OutputFormat::kTable, MakeDevices());
  INFO(text);
  CHECK(std::count(text.begin(), text.end(), '\n') == 7);
  CHECK_THAT(text, Catch::Contains("| RoCE v2 | 192.0.2.7 |"));
  CHECK_THAT(text, Catch::Contains("cannot be opened"));
}

TEST_CASE("Devices: JSON has every fact, sizes in bytes") {
  const json devices = json::parse(FormatDevices(OutputFormat::kJson, MakeDevices()));
  REQUIRE(devices.size() == 2);
  const json& port = devices[0]["ports"][0];
  CHECK(devices[0]["device"] == "mlx5_0");
  CHECK(devices[0]["numa_node"] == 1);
  CHECK(devices[0]["max_read_depth"] == 16);
  CHECK(devices[0]["max_mr_bytes"] == UINT64_MAX);
  CHECK(port["state"] == "ACTIVE");
  CHECK(port["max_message_bytes"] == uint64_t{1} << 31);
  CHECK(port["gids"][1] == json({{"index", 3},
                                 {"type", "RoCE v2"},
                                 {"address", "192.0.2.7"},
                                 {"netdev", "eth2"},
                                 {"link_local", false}}));
  CHECK(devices[1]["numa_node"].is_null());
  CHECK_THAT(devices[1]["error"].get<std::string>(), Catch::Contains("errno 13"));
  CHECK(FormatDevices(OutputFormat::kJson, {}) == "[]\n");
}

TEST_CASE("Devices: without a device the reason is on stderr and the exit code 1") {
  if (!verbs::KernelDevices().empty()) KVD_SKIP("this machine has RDMA devices");
  FakeServer server;
  const CliResult result = RunCli(server, {"devices"});
  CHECK(result.exit == 1);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, Catch::StartsWith("kvcli: devices: no RDMA"));
  CHECK_THAT(result.err, Catch::Contains("rdma link add rxe0 type rxe netdev"));
  CHECK(RunCli(server, {"devices", "-w", "json"}).out == "[]\n");
  CHECK(server.connections == 0);
}

TEST_CASE("Doctor: a named device that is not there has failed, and the exit code is 1") {
  FakeServer server;
  server.statistics = {{"version", "0.1.0"}};
  const CliResult result = RunCli(server, {"doctor", "shm:/x", "--device=nothing_0"});
  CHECK(result.exit == 1);
  CHECK_THAT(result.out, Catch::Contains("failed   device"));
  CHECK_THAT(result.err, Catch::Contains("checks failed"));
}

TEST_CASE(
    "Doctor: a server that was named and is not there has failed, by default it is a warning") {
  if (!verbs::KernelDevices().empty()) KVD_SKIP("this machine has RDMA devices");
  FakeServer server;
  server.connect_error = absl::UnavailableError("no socket at /x; is kvd running?");
  CHECK(RunCli(server, {"doctor"}).exit == 0);
  CHECK(RunCli(server, {"doctor", "shm:/x"}).exit == 3);
  CHECK(RunCli(server, {"--server=shm:/x", "doctor"}).exit == 3);
  const CliResult json_result = RunCli(server, {"doctor", "shm:/x", "-w", "json"});
  CHECK(json::parse(json_result.out)["failed"] == 1);
  CHECK(server.targets.back() == "shm:/x");
}

TEST_CASE("Doctor: an RDMA target makes RDMA a must") {
  if (!verbs::KernelDevices().empty()) KVD_SKIP("this machine has RDMA devices");
  FakeServer server;
  const CliResult result = RunCli(server, {"doctor", "192.0.2.7:7711"});
  CHECK(result.exit == 1);
  CHECK_THAT(result.out, Catch::Contains("failed   device"));
}

}  // namespace
}  // namespace kvd::cli::test
