// kvcli devices, kvcli doctor and kvd --check on a machine without RDMA, where shared memory has to
// serve, and where each says why there is no RDMA.
#include <nlohmann/json.hpp>

#include "common/transport/verbs/device_sysfs.h"
#include "tests/e2e/doctor/run_program.h"
#include "tests/support/kvd_process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr const char* kKvd = "server/kvd";
const std::string kKvcli = "client/cli/kvcli ";
constexpr const char* kNoRdma = "no RDMA";

void SkipWithRdma() {
  if (!verbs::KernelDevices().empty()) KVD_SKIP("this machine has RDMA devices");
}

TEST_CASE("Without RDMA: kvcli devices says why and what to do, and exits with 1") {
  SkipWithRdma();
  const ProgramRun run = RunShell(kKvcli + "devices");
  INFO(run.err);
  CHECK(run.exit == 1);
  CHECK(run.out.empty());
  CHECK_THAT(run.err, Catch::StartsWith("kvcli: devices: no RDMA"));
  CHECK_THAT(run.err, Catch::Contains("modprobe rdma_rxe; rdma link add rxe0 type rxe netdev"));
}

TEST_CASE("Without RDMA: kvcli doctor passes over shared memory, with every size read back") {
  SkipWithRdma();
  KvdProcess kvd;
  REQUIRE(kvd.Start(kKvd, {"--memory=64m"}).ok());
  const ProgramRun run = RunShell(kKvcli + "doctor -w json " + kvd.target());
  INFO(run.out << run.err);
  CHECK(run.exit == 0);
  CHECK(run.err.empty());
  const auto report = nlohmann::json::parse(run.out);
  CHECK(report["failed"] == 0);
  int reads = 0;
  for (const auto& check : report["checks"]) {
    if (check["check"].get<std::string>().starts_with("READ ")) ++reads;
    if (check["check"] == "device") {
      CHECK(check["outcome"] == "warning");
      CHECK_THAT(check["found"].get<std::string>(), Catch::Contains(kNoRdma));
      CHECK_THAT(check["found"].get<std::string>(), Catch::Contains("using shared memory"));
    }
  }
  CHECK(reads == 6);
  CHECK(RunShell(kKvcli + "scan --server=" + kvd.target()).out.empty());
}

// The line of a check, or none.
nlohmann::json LineOf(const nlohmann::json& report, const std::string& check) {
  for (const auto& line : report["checks"]) {
    if (line["check"] == check) return line;
  }
  return {};
}

TEST_CASE("kvcli doctor --perf over shared memory: splits GETs up, names causes, writes nothing") {
  KvdProcess kvd;
  REQUIRE(kvd.Start(kKvd, {"--memory=64m", "--hugepages=off", "--poll=event"}).ok());
  const std::string perf = kKvcli + "doctor --perf -w json " + kvd.target();
  const ProgramRun empty = RunShell(perf);
  INFO(empty.out << empty.err);
  CHECK(empty.exit == 0);
  auto report = nlohmann::json::parse(empty.out);
  CHECK(LineOf(report, "GET")["outcome"] == "warning");
  CHECK_THAT(LineOf(report, "GET")["remedy"].get<std::string>(), Catch::Contains("--write"));

  REQUIRE(RunShell(kKvcli + "put secret-key secret-value --server=" + kvd.target()).exit == 0);
  const std::string puts = "stat requests_put --server=" + kvd.target();
  const std::string before = RunShell(kKvcli + puts).out;
  const ProgramRun run = RunShell(perf);
  CHECK(run.exit == 0);
  CHECK(RunShell(kKvcli + puts).out == before);
  INFO(run.out);
  report = nlohmann::json::parse(run.out);
  CHECK(report["failed"] == 0);
  for (const char* check : {"GET, cold", "GET, known"}) {
    CHECK_THAT(LineOf(report, check)["found"].get<std::string>(),
               Catch::Contains("2000 GETs") && Catch::Contains("verification") &&
                   Catch::Contains("p99"));
  }
  CHECK_THAT(LineOf(report, "GET, known")["found"].get<std::string>(),
             Catch::Contains("100.0 % of which it answered"));
  CHECK_THAT(LineOf(report, "cause: 4 KiB pages")["found"].get<std::string>(),
             Catch::Contains("/proc/self/smaps"));
  CHECK_THAT(LineOf(report, "cause: events")["found"].get<std::string>(),
             Catch::Contains("poll_mode"));
  CHECK_THAT(run.out, !Catch::Contains("secret"));

  const ProgramRun writing = RunShell(perf + " --write");
  CHECK(writing.exit == 0);
  CHECK(RunShell(kKvcli + "scan --server=" + kvd.target()).out == "secret-key\n");
  CHECK(RunShell(kKvcli + "doctor --write " + kvd.target()).exit == 2);
}

TEST_CASE("kvcli doctor --perf: in a store of many items too a location cache holds what it is given") {
  KvdProcess kvd;
  REQUIRE(kvd.Start(kKvd, {"--memory=64m", "--hugepages=off"}).ok());
  REQUIRE(RunShell("seq 50000 | sed 's/$/\\tvalue/' | " + kKvcli + "load - --server=" + kvd.target())
              .exit == 0);
  const ProgramRun run = RunShell(kKvcli + "doctor --perf -w json " + kvd.target());
  INFO(run.out << run.err);
  CHECK(run.exit == 0);
  CHECK_THAT(run.out, Catch::Contains("GET, known") && !Catch::Contains("cause: location cache"));
}

TEST_CASE("Without RDMA: kvcli doctor of a server that is not there exits with 3") {
  SkipWithRdma();
  const TempDir directory;
  const ProgramRun run = RunShell(kKvcli + "doctor shm:" + directory.Join("nothing"));
  INFO(run.out);
  CHECK(run.exit == 3);
  CHECK_THAT(run.out, Catch::Contains("failed   connect"));
  CHECK_THAT(run.out, Catch::Contains("start it with"));
}

TEST_CASE("Without RDMA: kvd's start line and kvd --check say why it is not up") {
  SkipWithRdma();
  KvdProcess kvd;
  REQUIRE(kvd.Start(kKvd, {}).ok());
  CHECK(kvd.Terminate() == 0);
  CHECK_THAT(kvd.Log(), Catch::Contains("serves shared memory at " + kvd.socket_path() +
                                        "; RDMA is not up: no RDMA"));
  const ProgramRun check = RunShell(std::string(kKvd) + " --check --shm=" + kvd.socket_path());
  INFO(check.out << check.err);
  CHECK(check.exit == 0);
  CHECK_THAT(check.out, Catch::Contains("warning: device: no RDMA"));
}

TEST_CASE("kvd --check fails where hugepages are required and are not there") {
  const TempDir directory;
  // More than any machine has; less than that needs no check of hugepages to be refused.
  const ProgramRun check = RunShell(
      "free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/"
      "free_hugepages || echo 0); exec " +
      std::string(kKvd) + " --check --hugepages=require --shm=" + directory.Join("s") +
      " --memory=$((2 * (free + 64)))m");
  INFO(check.out << check.err);
  CHECK(check.exit == 78);
  CHECK_THAT(check.err, Catch::Contains("sysctl vm.nr_hugepages="));
}

}  // namespace
}  // namespace kvd::test
