// On which NUMA node kvd's memory lies and on which processors its pollers run, as the kernel tells
// it. Runs on this machine, and in a guest that has two nodes.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "tests/e2e/kvd_process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;

constexpr char kNodes[] = "/sys/devices/system/node";

int LastNode() {
  int node = -1;
  while (std::filesystem::exists(std::string(kNodes) + "/node" + std::to_string(node + 1))) ++node;
  return node;
}

std::string Content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The line of /proc/PID/numa_maps about the region: "7f.. bind:1 file=/memfd:kvd-region ...
// N1=4096".
std::string RegionOf(pid_t pid) {
  std::istringstream maps(Content("/proc/" + std::to_string(pid) + "/numa_maps"));
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find("memfd:kvd-region") != std::string::npos) return line;
  }
  return "";
}

std::string CpusOfPoller(pid_t pid, const std::string& name) {
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    if (Content(task.path() / "comm") != name + "\n") continue;
    const std::string status = Content(task.path() / "status");
    const size_t at = status.find("Cpus_allowed_list:\t");
    return status.substr(at + 19, status.find('\n', at) - at - 19);
  }
  return "";
}

std::string Text(int number) { return std::to_string(number); }

TEST_CASE("kvd --numa_node: the region lies there, and nowhere else") {
  const int node = LastNode();
  if (node < 0) KVD_SKIP("this kernel tells nothing of NUMA nodes");
  TempDir dir;
  for (const std::string hugepages : {"off", "prefer"}) {
    KvdProcess kvd({"--shm=" + dir.Join("s"), "--memory=16m", "--hugepages=" + hugepages,
                    "--numa_node=" + Text(node)});
    REQUIRE(kvd.WaitReady());
    const std::string region = RegionOf(kvd.pid());
    INFO(region);
    CHECK_THAT(region, Contains(" bind:" + Text(node) + " "));
    CHECK_THAT(region, Contains(" N" + Text(node) + "="));
    for (int other = 0; other < node; ++other) {
      CHECK(region.find(" N" + Text(other) + "=") == std::string::npos);
    }
  }
}

TEST_CASE("kvd --poller_cpus: each poller runs on its own processor") {
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  if (cpus < 2) KVD_SKIP("this machine has one processor");
  TempDir dir;
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--pollers=2", "--poller_cpus=1,0"});
  REQUIRE(kvd.WaitReady());
  CHECK(CpusOfPoller(kvd.pid(), "kvd-poller-0") == "1");
  CHECK(CpusOfPoller(kvd.pid(), "kvd-poller-1") == "0");
}

TEST_CASE("A client that is kept to one processor waits awake for answers that come soon") {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) KVD_SKIP("this machine has one processor");
  TempDir dir;
  KvdProcess kvd({"--shm=" + dir.Join("s"), "--poll=busy"});
  REQUIRE(kvd.WaitReady());
  cpu_set_t all;
  cpu_set_t one;
  REQUIRE(sched_getaffinity(0, sizeof(all), &all) == 0);
  CPU_ZERO(&one);
  CPU_SET(1, &one);
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  const auto client = Client::Connect("shm:" + dir.Join("s")).value();
  // Of many batches at least one during which nobody else had kvd's processor for long.
  constexpr int kPuts = 200;
  long sleeps = kPuts;
  for (int batch = 0; batch < 500 && sleeps >= kPuts / 2; ++batch) {
    rusage before{};
    rusage after{};
    getrusage(RUSAGE_THREAD, &before);
    for (int i = 0; i < kPuts; ++i) REQUIRE(client->Put("key", "value").ok());
    getrusage(RUSAGE_THREAD, &after);
    sleeps = after.ru_nvcsw - before.ru_nvcsw;
  }
  sched_setaffinity(0, sizeof(all), &all);
  CHECK(sleeps < kPuts / 2);
}

TEST_CASE("kvd --numa_node: what cannot be is refused, with the remedy") {
  const int node = LastNode();
  if (node < 0) KVD_SKIP("this kernel tells nothing of NUMA nodes");
  TempDir dir;
  const std::string shm = "--shm=" + dir.Join("s");
  Ended ended = RunKvd({shm, "--numa_node=" + Text(node + 1)});
  CHECK(ended.exit_code == 78);
  CHECK_THAT(ended.err, Contains("--numa_node=" + Text(node + 1) + " is not there"));
  ended = RunKvd({shm, "--check", "--poller_cpus=9999"});
  CHECK(ended.exit_code == 78);
  CHECK_THAT(ended.err, Contains("processor 9999 is not there"));
  ended = RunKvd({shm, "--numa_node=two"});
  CHECK(ended.exit_code == 2);
  CHECK_THAT(ended.err, Contains("auto, off, or a node's number"));
  ended = RunKvd({shm, "--poller_cpus=3-1"});
  CHECK(ended.exit_code == 2);
  CHECK_THAT(ended.err, Contains("--poller_cpus=3-1"));
  if (node == 0) return;  // all of this machine's memory is of one node
  ended = RunKvd({shm, "--hugepages=off", "--memory=1100m", "--numa_node=" + Text(node)});
  CHECK(ended.exit_code == 1);
  CHECK_THAT(ended.err, Contains("that node has") && Contains("--numa_node=auto"));
  ended = RunKvd({shm, "--hugepages=require", "--memory=100m", "--numa_node=" + Text(node)});
  CHECK(ended.exit_code == 1);
  CHECK_THAT(ended.err, Contains("need 50 x 2 MiB hugepages on NUMA node " + Text(node)));
}

TEST_CASE("kvd --numa_node=auto: without a device that has a node, it is left to the kernel") {
  TempDir dir;
  const Ended ended = RunKvd({"--check", "--shm=" + dir.Join("s")});
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.out, Contains("NUMA: wherever the kernel likes\n"));
}

}  // namespace
}  // namespace kvd::test
