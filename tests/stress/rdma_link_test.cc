// Links that go down and devices that are removed under a real kvd and real clients over RDMA:
// sessions end, and whoever can goes on.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/kv_client.h"
#include "common/base/clock.h"
#include "tests/softroce/rdma_environment.h"
#include "tests/stress/hunt_value.h"
#include "tests/stress/rdma_rig.h"
#include "tests/stress/victims.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::seconds;

// A link is down for as long as one of these lives.
class LinkDown {
 public:
  LinkDown(const RdmaEnvironment& environment, const std::string& netdev)
      : program_(environment.network_program), netdev_(netdev) {
    Run("down");
  }
  ~LinkDown() { Run("up"); }

 private:
  void Run(const std::string& direction) const {
    if (std::system((program_ + " " + direction + " " + netdev_).c_str()) != 0) std::abort();
  }

  const std::string program_;
  const std::string netdev_;
};

// What the kernel holds for RDMA users: protection domains, queues, ids, memory regions.
std::string Resources() {
  std::string text;
  FILE* pipe = popen("rdma resource show", "r");
  char line[512];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) text += line;
  pclose(pipe);
  return text;
}

// A client in a thread of its own that PUTs and GETs without end and checks what comes back.
class Load {
 public:
  Load(std::unique_ptr<Client> client, uint64_t key)
      : client_(std::move(client)), thread_([this, key] { Run(HuntKey(key), key); }) {}
  ~Load() { Stop(); }

  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  uint64_t done() const { return done_; }      // operations that succeeded
  uint64_t failed() const { return failed_; }  // and that did not
  uint64_t wrong() const { return wrong_; }    // values that nobody wrote
  int64_t longest_ms() const { return longest_ns_ / 1'000'000; }

  // Once stopped: the first error.
  const absl::Status& first_error() const { return first_error_; }

 private:
  void Run(const std::string& key, uint64_t number) {
    std::string wanted;
    std::string value;
    const seconds deadline(1);
    for (uint64_t generation = 1; !stop_; ++generation) {
      if (IsDelete(generation)) continue;
      MakeHuntValue(number, generation, wanted);
      Count(client_->Put(key, wanted, {.deadline = deadline}).status());
      const absl::Status got = client_->Get(key, value, nullptr, {.deadline = deadline});
      Count(got);
      if (got.ok() && !CertifyHuntValue(number, value).has_value()) ++wrong_;
    }
  }

  void Count(const absl::Status& status) {
    const int64_t now_ns = RealClock::Get().NowMonotonicNs();
    longest_ns_ = std::max<int64_t>(longest_ns_, now_ns - std::exchange(begun_ns_, now_ns));
    if (status.ok()) {
      ++done_;
      return;
    }
    if (first_error_.ok()) first_error_ = status;
    ++failed_;
  }

  std::unique_ptr<Client> client_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> done_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<uint64_t> wrong_{0};
  std::atomic<int64_t> longest_ns_{0};
  int64_t begun_ns_ = RealClock::Get().NowMonotonicNs();
  absl::Status first_error_;
  std::thread thread_;
};

using Loads = std::vector<std::unique_ptr<Load>>;

// Whether each of them comes to do `more` more operations.
bool AllDo(const Loads& loads, uint64_t more) {
  std::vector<uint64_t> goals;
  for (const auto& load : loads) goals.push_back(load->done() + more);
  return Eventually([&] {
    for (size_t i = 0; i < loads.size(); ++i) {
      if (loads[i]->done() < goals[i]) return false;
    }
    return true;
  });
}

bool AllFail(const Loads& loads) {
  return Eventually([&] {
    return std::all_of(loads.begin(), loads.end(),
                       [](const auto& load) { return load->failed() > 0; });
  });
}

std::string StatText(Client& client, const std::string& name) {
  const auto stats = client.Stats();
  KVD_REQUIRE_OK(stats);
  for (const auto& [key, value] : *stats) {
    if (key == name) return value;
  }
  return "";
}

// Whether rdma_cm connects the two devices for a program that has nothing to do with kvd.
// Linux 6.1's Soft-RoCE loses the queue pair by which it does so, for good, if a link goes down at
// the wrong moment of somebody's connecting.
bool KernelConnects(const RdmaEnvironment& environment) {
  const std::string lat = "timeout 10 ib_send_lat -R -n 10 -d ";
  const std::string server = lat + environment.server().device + " >/dev/null 2>&1 & ";
  const std::string client =
      lat + environment.client().device + " " + environment.server().address + " >/dev/null 2>&1";
  const std::string tries = "for i in 1 2 3 4 5 6 7 8; do " + client + " && exit 0; done; exit 1";
  return std::system((server + tries).c_str()) == 0;
}

// Its devices cannot be renewed either, for it may never give them back: the test begins anew in
// another guest (tests/softroce/run_in_guest.sh).
[[noreturn]] void AskForAnotherGuest(const std::string& netdev) {
  std::cout << "the kernel itself connects nobody any more after " << netdev << " was down"
            << std::endl;
  constexpr int kKernelIsLost = 75;
  std::_Exit(kKernelIsLost);
}

void LinkGoesDownAndUp(RdmaRig& rig, const std::string& netdev) {
  const auto local = ConnectTo(rig.kvd);
  Loads loads;
  for (uint64_t key = 0; key < 3; ++key)
    loads.push_back(std::make_unique<Load>(rig.ConnectOverWire(), key));
  REQUIRE(AllDo(loads, 50));
  const std::string before = Resources();
  {
    const LinkDown down(rig.environment, netdev);
    REQUIRE(AllFail(loads));
    // kvd finds out by itself, though nobody says goodbye.
    REQUIRE(Eventually([&] { return Stat(*local, "sessions") == 1; }));
    KVD_REQUIRE_OK(local->Put("local", "goes on"));
  }
  const bool go_on = AllDo(loads, 50);
  if (!go_on && !KernelConnects(rig.environment)) AskForAnotherGuest(netdev);
  REQUIRE(go_on);
  std::string after;
  const bool same = Eventually([&] { return (after = Resources()) == before; });
  INFO(before << "now\n" << after);
  CHECK(same);
  for (const auto& load : loads) {
    load->Stop();
    INFO(load->first_error());
    CHECK(load->wrong() == 0);
    CHECK_FALSE(load->first_error().ok());
    std::cout << "longest operation " << load->longest_ms() << " ms, first error "
              << load->first_error() << "\n";
  }
  CHECK(Stat(*local, "sessions") == 4);
  loads.clear();
  // And anybody new is served.
  KVD_REQUIRE_OK(rig.ConnectOverWire()->Put("new", "value"));
  CHECK(rig.kvd.Terminate() == 0);
}

}  // namespace

TEST_CASE(
    "RDMA link: one that goes down under load ends sessions; after it is up clients go on by "
    "themselves") {
  const bool of_clients = GENERATE(true, false);
  RdmaRig rig;
  const RdmaEnvironment& environment = rig.environment;
  if (!environment.disposable || environment.sides.size() < 2)
    KVD_SKIP("links of this machine are left alone");
  const std::string netdev = of_clients ? environment.client().netdev : environment.server().netdev;
  CAPTURE(netdev);
  LinkGoesDownAndUp(rig, netdev);
}

TEST_CASE(
    "RDMA link: a device that is removed under load ends its sessions; shared memory goes on") {
  RdmaRig rig;
  if (!rig.environment.disposable || rig.environment.sides.size() < 2)
    KVD_SKIP("devices of this machine are left alone");
  const RdmaSide& side = rig.environment.server();
  // However kvd listens: at an address of the device, at all of them, or without rdma_cm.
  const std::string way = GENERATE("address", "all addresses", "tcp");
  CAPTURE(way);
  if (way == "all addresses") {
    rig.flags[1] = "--listen=*:7711";
    rig.flags.push_back("--device=" + side.device);
  }
  if (way == "tcp") {
    rig.flags.push_back("--connect=tcp");
    rig.by_tcp = true;
  }
  rig.Start();
  Loads remote;
  for (uint64_t key = 0; key < 2; ++key)
    remote.push_back(std::make_unique<Load>(rig.ConnectOverWire(), key));
  Loads shared;
  shared.push_back(std::make_unique<Load>(ConnectTo(rig.kvd), 2));
  const auto local = ConnectTo(rig.kvd);
  REQUIRE(AllDo(remote, 20));
  REQUIRE(StatText(*local, "rdma_device_state") == "present");
  // It waits for the last user of the device.
  REQUIRE(std::system(("timeout 30 rdma link del " + side.device).c_str()) == 0);
  REQUIRE(AllFail(remote));
  REQUIRE(AllDo(shared, 200));
  CHECK(shared.front()->failed() == 0);
  REQUIRE(Eventually([&] { return Stat(*local, "sessions") == 2; }));
  CHECK_THAT(StatText(*local, "rdma_device_state"),
             Catch::StartsWith("gone") && Catch::Contains("removed"));
  CHECK(StatText(*local, "rdma_port_state").empty());
  // The log has a thread of its own.
  REQUIRE(Eventually(
      [&] { return rig.kvd.Log().find(side.device + " is given back") != std::string::npos; }));
  CHECK_THAT(rig.kvd.Log(), Catch::Contains("all sessions end") &&
                                Catch::Contains(side.device + " is being removed"));
  for (const auto& load : remote) {
    load->Stop();
    CHECK(load->wrong() == 0);
    std::cout << "longest operation " << load->longest_ms() << " ms, first error "
              << load->first_error() << "\n";
  }
  shared.clear();
  CHECK(rig.kvd.Terminate() == 0);
  // A kvd that starts when it is there again serves by it.
  REQUIRE(std::system(
              ("rdma link add " + side.device + " type rxe netdev " + side.netdev).c_str()) == 0);
  rig.Start();
  KVD_REQUIRE_OK(rig.ConnectOverWire()->Put("key", "value"));
}
}  // namespace kvd::test
