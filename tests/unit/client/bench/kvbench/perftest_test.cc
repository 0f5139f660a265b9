#include "client/bench/kvbench/perftest.h"

#include "client/bench/kvbench/rdma_path.h"
#include "tests/support/test.h"

namespace kvd::bench {
namespace {

constexpr char kLatency[] =
    "---------------------------------------------------------------------------------------\n"
    "                    RDMA_Read Latency Test\n"
    " Dual-port       : OFF\t\tDevice         : rxeb\n"
    " Mtu             : 4096[B]\n"
    "---------------------------------------------------------------------------------------\n"
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
    "t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec] \n"
    " 1024    3000          24.11          911.70       28.14     \t       30.20       "
    "\t20.00\t\t44.10   \t\t"
    "120.00  \n"
    "---------------------------------------------------------------------------------------\n";

constexpr char kRate[] =
    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
    " 96         5000             3.56               3.46     \t\t     0.037796\n";

TEST_CASE("Perftest: the median of a latency test, the rate of a bandwidth test") {
  const auto latency = ParsePerftest(kLatency, 1024, false);
  REQUIRE(latency.has_value());
  CHECK(latency->typical_us == Approx(28.14));
  const auto rate = ParsePerftest(kRate, 96, true);
  REQUIRE(rate.has_value());
  CHECK(rate->messages_per_second == Approx(37'796));
}

TEST_CASE("Perftest: no line for those bytes is no result") {
  CHECK_FALSE(ParsePerftest(kLatency, 64, false).has_value());
  CHECK_FALSE(ParsePerftest("Couldn't connect to 10.0.0.1:18515\n", 64, false).has_value());
  CHECK_FALSE(ParsePerftest("", 64, false).has_value());
}

TEST_CASE("Perftest: what to start at the other end") {
  PerftestRun run;
  run.program = "ib_read_bw";
  run.bytes = 1024;
  run.iterations = 3000;
  run.queue_pairs = 4;
  CHECK(ServerCommand(run) == "ib_read_bw -s 1024 -n 3000 -F -q 4");
  run.program = "ib_read_lat";
  CHECK(ServerCommand(run) == "ib_read_lat -s 1024 -n 3000 -F");
}

TEST_CASE("Perftest: a program that is not there") {
  CHECK(HasProgram("sh"));
  CHECK_FALSE(HasProgram("no-such-program-anywhere"));
}

verbs::DeviceFacts Device(const char* name, std::vector<verbs::GidFacts> gids) {
  verbs::DeviceFacts device;
  device.name = name;
  verbs::PortFacts port;
  port.active_mtu_bytes = 4096;
  port.gids = std::move(gids);
  device.ports.push_back(port);
  return device;
}

TEST_CASE("RdmaPath: the device is the one that has the address, by its RoCE v2 GID") {
  using verbs::GidType;
  const std::vector<verbs::DeviceFacts> devices = {
      Device("a", {{0, GidType::kRoceV2, "fe80::1", "", true},
                   {1, GidType::kRoceV2, "10.0.0.1", "", false}}),
      Device("b", {{0, GidType::kRoceV2, "fe80::2", "", true},
                   {1, GidType::kRoceV1, "10.0.0.2", "", false},
                   {2, GidType::kRoceV2, "10.0.0.2", "", false}})};
  const auto end = EndOf(devices, "10.0.0.2", "");
  REQUIRE(end.has_value());
  CHECK(end->device == "b");
  CHECK(end->gid_index == 2);
  CHECK(end->mtu_bytes == 4096);
  CHECK_FALSE(EndOf(devices, "10.0.0.3", "").has_value());
  CHECK_FALSE(EndOf(devices, "10.0.0.2", "a").has_value());
  // A device without the route's address: its first that is not only for its link.
  CHECK(EndOf(devices, "", "b")->gid_index == 1);
  CHECK_FALSE(RdmaPathTo("shm:/tmp/x", "").has_value());
}

}  // namespace
}  // namespace kvd::bench
