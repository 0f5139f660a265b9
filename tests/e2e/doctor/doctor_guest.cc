// kvcli devices, kvcli doctor and kvd --check where there is RDMA: what they say of sound devices,
// and of each way in which they can be taken away that the guest can provoke.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/e2e/doctor/run_program.h"
#include "tests/softroce/rdma_environment.h"
#include "tests/support/kvd_process.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using nlohmann::json;

constexpr const char* kKvd = "server/kvd";
const std::string kKvcli = "client/cli/kvcli ";
// Without root's right to ignore limits and permissions.
const std::string kAsUser = "setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all ";

RdmaEnvironment Guest() {
  const RdmaEnvironment environment = FindRdmaEnvironment();
  if (!environment.disposable) KVD_SKIP("not in the guest");
  return environment;
}

// The report of `kvcli doctor`, with what comes before and after it.
json Doctor(const std::string& before, const std::string& arguments, int exit) {
  const ProgramRun run = RunShell(before + kKvcli + "doctor -w json " + arguments);
  INFO(run.out << run.err);
  CHECK(run.exit == exit);
  return json::parse(run.out);
}

// The line of a check, outcome first: "failed: is DOWN ...; ip link set ...".
std::string Line(const json& report, const std::string& check, const std::string& outcome) {
  std::string seen;
  for (const json& line : report["checks"]) {
    if (line["check"] == check && line["outcome"] == outcome) {
      return line["found"].get<std::string>() + "; " + line["remedy"].get<std::string>();
    }
    seen += line["check"].get<std::string>() + " ";
  }
  FAIL("no line " << outcome << " " << check << " among " << seen);
  return "";
}

const json& Named(const json& devices, const std::string& name) {
  return *std::find_if(devices.begin(), devices.end(),
                       [&](const json& device) { return device["device"] == name; });
}

TEST_CASE("Devices: each one is listed with its port, MTU, limits and GIDs") {
  const RdmaEnvironment environment = Guest();
  const ProgramRun run = RunShell(kKvcli + "devices -w json");
  INFO(run.out << run.err);
  REQUIRE(run.exit == 0);
  const json devices = json::parse(run.out);
  REQUIRE(devices.size() == environment.sides.size());
  for (const RdmaSide& side : environment.sides) {
    const json& device = Named(devices, side.device);
    CHECK(device["software"] == true);
    CHECK(device["numa_node"].is_null());
    CHECK(device["max_read_depth"] == 128);
    CHECK(device["max_initiated_read_depth"] == 128);
    REQUIRE(device["ports"].size() == 1);
    const json& port = device["ports"][0];
    CHECK(port["port"] == 1);
    CHECK(port["state"] == "ACTIVE");
    CHECK(port["physical_state"] == "LinkUp");
    CHECK(port["link"] == "RoCE");
    CHECK(port["netdev"] == side.netdev);
    CHECK(port["active_mtu_bytes"] == 4096);
    CHECK(port["max_message_bytes"] == 8 << 20);
    REQUIRE(port["gids"].size() == 3);
    for (const json& gid : port["gids"]) {
      CHECK(gid["type"] == "RoCE v2");
      CHECK(gid["netdev"] == side.netdev);
    }
    CHECK(port["gids"][0]["link_local"] == true);
    CHECK(port["gids"][1]["address"] == side.address);
    CHECK(port["gids"][1]["index"] == 1);
    CHECK(port["gids"][2]["address"] == side.ipv6_address);
  }
}

TEST_CASE("Devices: one by its name, in words and as a table; another name is an error") {
  const RdmaEnvironment environment = Guest();
  const RdmaSide& side = environment.client();
  const ProgramRun words = RunShell(kKvcli + "devices " + side.device);
  CHECK(words.exit == 0);
  CHECK_THAT(words.out, Catch::Contains(side.address + " (RoCE v2)"));
  CHECK_THAT(words.out, !Catch::Contains(environment.server().device));
  CHECK_THAT(RunShell(kKvcli + "devices -w table").out, Catch::Contains("| " + side.address));
  const ProgramRun absent = RunShell(kKvcli + "devices mlx5_9");
  CHECK(absent.exit == 1);
  CHECK_THAT(absent.err, Catch::Contains("there is no RDMA device mlx5_9; name one of rxea, rxeb"));
}

TEST_CASE("Doctor: passes against a kvd over shared memory, and leaves no key") {
  Guest();
  KvdProcess kvd;
  REQUIRE(kvd.Start(kKvd, {}).ok());
  const json report = Doctor("", kvd.target(), 0);
  CHECK(report["failed"] == 0);
  Line(report, "device", "ok");
  Line(report, "permission", "ok");
  Line(report, "port rxea/1", "ok");
  CHECK_THAT(Line(report, "address", "ok"), Catch::Contains("10.77.0.1 (rxea)"));
  CHECK_THAT(Line(report, "namespaces", "ok"), Catch::Contains("shared"));
  Line(report, "locked memory", "ok");
  int reads = 0;
  for (const json& line : report["checks"]) {
    reads += line["check"].get<std::string>().starts_with("READ ") ? 1 : 0;
  }
  CHECK(reads == 6);
  CHECK(RunShell(kKvcli + "scan --server=" + kvd.target()).out.empty());
  CHECK(kvd.Terminate() == 0);
  CHECK_THAT(kvd.Log(),
             Catch::Contains("RDMA is not up: not asked for; to serve 10.77.0.1 (rxea)"));
}

// A kvd that RDMA clients reach, besides the flags of the case.
struct RdmaKvd {
  explicit RdmaKvd(std::vector<std::string> flags = {}) {
    address = Guest().server().address;
    target = "rdma:" + address + ":7711";
    flags.insert(flags.end(), {"--listen=" + address + ":7711", "--insecure"});
    const absl::Status started = kvd.Start(kKvd, flags);
    INFO(started);
    REQUIRE(started.ok());
  }

  KvdProcess kvd;
  std::string address;
  std::string target;
};

TEST_CASE("Doctor: over RDMA every time stands beside the floor of the same run") {
  const RdmaKvd kvd;
  const json report = Doctor("", kvd.target + " --device=rxea", 0);
  CHECK(report["failed"] == 0);
  CHECK_THAT(Line(report, "connect", "ok"), Catch::Contains("to " + kvd.target));
  CHECK_THAT(Line(report, "floor", "ok"), Catch::Contains("a plain READ of 64 B takes"));
  int compared = 0;
  for (const json& line : report["checks"]) {
    const std::string check = line["check"];
    if (!check.starts_with("READ ") && !check.starts_with("PUT ")) continue;
    INFO(line.dump());
    CHECK_THAT(line["found"].get<std::string>(), Catch::Contains("READ of as many bytes ("));
    ++compared;
  }
  CHECK(compared == 12);
  CHECK(RunShell(kKvcli + "scan --server=" + kvd.target).out.empty());
}

TEST_CASE("Doctor: --perf sets GETs against plain READs, and names Soft-RoCE and what is lost") {
  const RdmaEnvironment environment = Guest();
  const RdmaKvd kvd({"--hugepages=off"});
  const json report = Doctor("", "--perf --write " + kvd.target + " --device=rxea", 0);
  const std::string cold = Line(report, "GET, cold", "ok");
  CHECK_THAT(cold, Catch::Contains("READs of ") && Catch::Contains("as many plain READs take"));
  CHECK_THAT(Line(report, "GET, known", "ok"), Catch::Contains("100.0 % of which it answered"));
  Line(report, "GET, missed", "ok");
  CHECK_THAT(Line(report, "cause: software device", "warning"), Catch::Contains("rxea"));
  CHECK_THAT(Line(report, "cause: 4 KiB pages", "warning"), Catch::Contains("page_kind"));
  CHECK(RunShell(kKvcli + "scan --server=" + kvd.target).out.empty());
  REQUIRE(RunShell("tc qdisc add dev va root netem loss 0.5%").exit == 0);
  const json lossy =
      Doctor("", "--perf --write " + kvd.target + " --device=rxea --deadline=60s", 0);
  REQUIRE(RunShell("tc qdisc del dev va root").exit == 0);
  CHECK_THAT(Line(lossy, "cause: loss", "warning"), Catch::Contains("hw_counters"));
}

TEST_CASE("Doctor: an RDMA server that is not there brings advice for RDMA") {
  const std::string target = "rdma:" + Guest().server().address + ":7999";
  const std::string line = Line(Doctor("", target, 3), "connect", "failed");
  CHECK_THAT(line, Catch::Contains("--listen") && !Catch::Contains("shm:"));
  const std::string wrong = Line(Doctor("", "rdma:host:port", 2), "connect", "failed");
  CHECK_THAT(wrong, Catch::Contains("rdma:HOST:PORT"));
}

TEST_CASE("kvcli: --device names the one to use, or an error that names those there are") {
  const RdmaKvd kvd;
  const std::string put = kKvcli + "put k v --server=" + kvd.target;
  CHECK(RunShell(put + " --device=rxea").exit == 0);
  CHECK(RunShell("KVCLI_DEVICE=rxea " + put).exit == 0);
  const ProgramRun absent = RunShell(put + " --device=mlx5_9");
  CHECK(absent.exit == 3);
  CHECK_THAT(absent.err, Catch::Contains("no RDMA device named mlx5_9; there are: rxea, rxeb"));
  const ProgramRun devices = RunShell(kKvcli + "devices --device=rxeb");
  CHECK(devices.exit == 0);
  CHECK_THAT(devices.out, Catch::StartsWith("rxeb") && !Catch::Contains("rxea"));
  CHECK(RunShell("KVCLI_DEVICE=mlx5_9 " + kKvcli + "devices").exit == 1);
}

TEST_CASE("kvcli: --connect=tcp and --gid_index lead to a kvd of that kind") {
  const RdmaKvd kvd({"--connect=tcp"});
  const std::string put = kKvcli + "put k v --server=" + kvd.target + " ";
  const std::string tcp = put + "--device=rxea --connect=tcp ";
  CHECK(RunShell(tcp).exit == 0);
  CHECK(RunShell("KVCLI_CONNECT=tcp KVCLI_DEVICE=rxea KVCLI_GID_INDEX=1 " + put).exit == 0);
  const ProgramRun out_of_range = RunShell(tcp + "--gid_index=9");
  CHECK(out_of_range.exit == 3);
  CHECK_THAT(out_of_range.err, Catch::Contains("rxea has no GID with index 9"));
  const ProgramRun no_use = RunShell(put + "--gid_index=1");
  CHECK(no_use.exit == 2);
  CHECK_THAT(no_use.err, Catch::Contains("--gid_index is for --connect=tcp"));
  CHECK(RunShell(put).exit == 3);  // rdma_cm finds nobody there
  Line(Doctor("", kvd.target + " --connect=tcp --device=rxea", 0), "floor", "ok");
}

TEST_CASE("kvd at all addresses serves by one device; another address needs --connect=tcp") {
  const RdmaEnvironment environment = Guest();
  const std::string client = environment.client().address, server = environment.server().address;
  // As in a pod: an address of a network without an RDMA device.
  const std::string pod = "192.168.99.1";
  REQUIRE(RunShell("ip link add pod0 type dummy && ip addr add " + pod +
                   "/24 dev pod0 && ip link set pod0 up")
              .exit == 0);
  const auto put = [](const std::string& address, const std::string& flags) {
    return RunShell(kKvcli + "put k v --server=rdma:" + address + ":7711 --deadline=9s " + flags);
  };
  {
    KvdProcess kvd;
    REQUIRE(kvd.Start(kKvd, {"--listen=0.0.0.0:7711", "--insecure"}).ok());
    CHECK(put(client, "").exit == 0);
    const ProgramRun other_device = put(server, "");
    CHECK(other_device.exit == 5);
    CHECK_THAT(other_device.err, Catch::Contains("kvd serves by rxea, not by rxeb"));
    const ProgramRun no_device = put(pod, "");
    CHECK(no_device.exit == 3);
    CHECK_THAT(no_device.err, Catch::Contains("no RDMA device leads to " + pod + ":7711"));
  }
  {
    KvdProcess kvd;
    REQUIRE(
        kvd.Start(kKvd, {"--listen=0.0.0.0:7711", "--insecure", "--connect=tcp", "--device=rxeb"})
            .ok());
    for (const std::string& address : {pod, client, server})
      CHECK(put(address, "--connect=tcp --device=rxea").exit == 0);
  }
  REQUIRE(RunShell("ip link del pod0").exit == 0);
}

TEST_CASE("kvd --check prints the local half") {
  Guest();
  const ProgramRun check = RunShell(std::string(kKvd) + " --check");
  INFO(check.out << check.err);
  CHECK(check.exit == 0);
  CHECK_THAT(check.out, Catch::Contains("ok: device: rxea, rxeb"));
  CHECK_THAT(check.out, Catch::Contains("ok: port rxeb/1: is ACTIVE, RoCE, vb, MTU 4096"));
}

TEST_CASE(
    "kvd --check: --listen at an address that no RDMA port has fails, with those that could be "
    "used") {
  Guest();
  const std::string check = std::string(kKvd) + " --check --insecure --listen=";
  const ProgramRun elsewhere = RunShell(check + "192.0.2.1:7711");
  INFO(elsewhere.out << elsewhere.err);
  CHECK(elsewhere.exit == 78);
  CHECK_THAT(elsewhere.err,
             Catch::Contains("address 192.0.2.1: no interface here has it; use one of "));
  CHECK_THAT(elsewhere.err, Catch::Contains("10.77.0.2 (rxeb)"));
  for (const char* good : {"10.77.0.2:7711", "'[fd77::2]:7711'", "0.0.0.0:7711"}) {
    const ProgramRun here = RunShell(check + good);
    INFO(good << here.out << here.err);
    CHECK(here.exit == 0);
  }
}

TEST_CASE("Doctor: addresses on and off RDMA devices") {
  Guest();
  CHECK_THAT(Line(Doctor("", "--address=10.77.0.2", 0), "address 10.77.0.2", "ok"),
             Catch::Contains("rxeb/1, vb"));
  CHECK_THAT(
      Line(Doctor("", "--address=fe80::ff:fe77:1%va", 0), "address fe80::ff:fe77:1%va", "ok"),
      Catch::Contains("rxea/1"));
  CHECK_THAT(Line(Doctor("", "--address=127.0.0.1", 1), "address 127.0.0.1", "failed"),
             Catch::Contains("is on lo, which no RDMA device uses"));
  CHECK_THAT(
      Line(Doctor("", "--address=192.0.2.1 --device=rxea", 1), "address 192.0.2.1", "failed"),
      Catch::Contains("use one of 10.77.0.1 (rxea)"));
}

TEST_CASE("Doctor: a port that is down is reported with its remedy, and only then") {
  const RdmaEnvironment environment = Guest();
  REQUIRE(RunShell(environment.network_program + " down va").exit == 0);
  const json report = Doctor("", "", 1);
  CHECK_THAT(Line(report, "port rxea/1", "failed"), Catch::Contains("is DOWN"));
  CHECK_THAT(Line(report, "port rxea/1", "failed"), Catch::Contains("ip link set va up"));
  Line(report, "port rxeb/1", "failed");
  // Whoever asked for shared memory is not failed by a port.
  KvdProcess kvd;
  REQUIRE(kvd.Start(kKvd, {}).ok());
  Line(Doctor("", kvd.target(), 0), "port rxea/1", "warning");
  CHECK(kvd.Terminate() == 0);
  CHECK_THAT(kvd.Log(), Catch::Contains("RDMA is not up: is DOWN"));
  REQUIRE(RunShell(environment.network_program + " up va").exit == 0);
  Line(Doctor("", "", 0), "port rxea/1", "ok");
}

TEST_CASE("Doctor: device files that an ordinary user may not open are named") {
  Guest();
  REQUIRE(RunShell("chmod 600 /dev/infiniband/uverbs0").exit == 0);
  const std::string line = Line(Doctor(kAsUser, "", 1), "permission", "failed");
  CHECK_THAT(line, Catch::Contains("/dev/infiniband/uverbs0: Permission denied (errno 13)"));
  CHECK_THAT(line, Catch::Contains("--device=/dev/infiniband"));
  CHECK_THAT(RunShell(kAsUser + kKvcli + "devices").out,
             Catch::Contains("/dev/infiniband/uverbs0: Permission denied"));
  REQUIRE(RunShell("chmod 666 /dev/infiniband/uverbs0").exit == 0);
  Line(Doctor(kAsUser, "", 0), "permission", "ok");
}

TEST_CASE("Doctor: without rdma_cm's file, as in a container that lacks it") {
  Guest();
  REQUIRE(RunShell("mv /dev/infiniband/rdma_cm /dev/kept_rdma_cm").exit == 0);
  const std::string line = Line(Doctor("", "", 1), "permission", "failed");
  CHECK_THAT(line, Catch::Contains("/dev/infiniband/rdma_cm: No such file or directory"));
  CHECK_THAT(line, Catch::Contains("modprobe rdma_ucm"));
  REQUIRE(RunShell("mv /dev/kept_rdma_cm /dev/infiniband/rdma_cm").exit == 0);
}

TEST_CASE("Doctor: the limit of locked memory, which root's rights lift") {
  Guest();
  CHECK_THAT(Line(Doctor("ulimit -l 64; ", "", 0), "locked memory", "ok"),
             Catch::Contains("CAP_IPC_LOCK"));
  const std::string line =
      Line(Doctor("ulimit -l 64; " + kAsUser, "", 1), "locked memory", "failed");
  CHECK_THAT(line, Catch::Contains("need 80 MiB, RLIMIT_MEMLOCK is 64 KiB"));
  CHECK_THAT(line, Catch::Contains("LimitMEMLOCK=infinity"));
}

TEST_CASE("Doctor: devices of the kernel for which there is no provider") {
  Guest();
  const std::string hidden = "unshare -m sh -c 'mount -t tmpfs none /etc/libibverbs.d && exec " +
                             kKvcli + "doctor -w json --server=shm:/nothing'";
  const ProgramRun run = RunShell(hidden);
  INFO(run.out << run.err);
  const std::string line = Line(json::parse(run.out), "device", "warning");
  CHECK_THAT(line, Catch::Contains("the kernel has rxea, rxeb"));
  CHECK_THAT(line, Catch::Contains("install the package ibverbs-providers"));
}

TEST_CASE("Doctor: hugepages that are there are counted") {
  Guest();
  CHECK_THAT(Line(Doctor("", "--memory=32m", 0), "hugepages", "ok"),
             Catch::Contains("need 16 x 2 MiB, free 16"));
  CHECK_THAT(Line(Doctor("", "--memory=64m", 0), "hugepages", "warning"),
             Catch::Contains("sysctl vm.nr_hugepages=32"));
}

}  // namespace
}  // namespace kvd::test
