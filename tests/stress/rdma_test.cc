// A real kvd and real clients over RDMA: what it promises over shared memory holds here too, and
// the NIC does the GETs.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/kv_client.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "tests/softroce/rdma_environment.h"
#include "tests/stress/hunt_value.h"
#include "tests/stress/victims.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A kvd that listens on the server's device, and clients that come from the other side.
struct Rig {
  Rig() : environment(FindRdmaEnvironment()) {
    if (environment.sides.empty()) KVD_SKIP("no RDMA device here; it runs in the guest");
    address = environment.server().address;
    flags = {"--memory=64m", "--listen=" + address + ":7711", "--insecure"};
    Start();
  }

  void Start() { KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), flags)); }

  std::string target() const { return "rdma:" + address + ":7711"; }

  // From the clients' side in any case: where the link is down, this kernel would connect its two
  // addresses by itself.
  std::unique_ptr<Client> ConnectOverWire() const {
    ClientOptions options;
    options.rdma_device = environment.client().device;
    options.rdma_connect_by_tcp = by_tcp;
    return Connect(options);
  }

  std::unique_ptr<Client> Connect(const ClientOptions& options = {}) const {
    auto client = Client::Connect(target(), options);
    // kvd has just begun to listen on its socket, and comes to RDMA next.
    Eventually([&] {
      if (absl::IsUnavailable(client.status())) client = Client::Connect(target(), options);
      return !absl::IsUnavailable(client.status());
    });
    KVD_REQUIRE_OK(client);
    return *std::move(client);
  }

  RdmaEnvironment environment;
  std::string address;
  std::vector<std::string> flags;
  bool by_tcp = false;  // connections over the wire; kvd's own flag is apart
  KvdProcess kvd;
};

// Faults of the wire between the devices, for as long as the object lives.
class Netem {
 public:
  Netem(const RdmaEnvironment& environment, const std::string& faults) : environment_(environment) {
    for (const RdmaSide& side : environment_.sides) {
      REQUIRE(std::system(
                  ("tc qdisc replace dev " + side.netdev + " root netem " + faults).c_str()) == 0);
    }
  }
  ~Netem() {
    for (const RdmaSide& side : environment_.sides) {
      if (std::system(("tc qdisc del dev " + side.netdev + " root").c_str()) != 0) std::abort();
    }
  }

 private:
  const RdmaEnvironment environment_;
};

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

}  // namespace

TEST_CASE("RDMA: items of every size go there and back, and shared memory sees the same ones") {
  Rig rig;
  const auto remote = rig.Connect();
  const auto local = ConnectTo(rig.kvd);
  Random random(Seed());
  std::string value;
  for (const size_t bytes :
       {0u, 1u, 64u, 800u, 2000u, 4000u, 4096u, 5000u, 65536u, 1u << 20, 9u << 20}) {
    CAPTURE(bytes);
    std::string wanted(bytes, '\0');
    for (char& c : wanted) c = static_cast<char>(random.Next());
    KVD_REQUIRE_OK(remote->Put("remote", wanted));
    KVD_REQUIRE_OK(remote->Get("remote", value));
    REQUIRE((value == wanted));
    KVD_REQUIRE_OK(local->Get("remote", value));
    REQUIRE((value == wanted));
    KVD_REQUIRE_OK(local->Put("local", wanted));
    KVD_REQUIRE_OK(remote->Get("local", value));
    REQUIRE((value == wanted));
  }
  KVD_REQUIRE_OK(remote->Delete("local"));
  KVD_REQUIRE_CODE(local->Get("local", value), kNotFound);
  KVD_REQUIRE_CODE(remote->Get("local", value), kNotFound);
}

TEST_CASE("RDMA: GETs go on while kvd is stopped, and cost it nothing") {
  Rig rig;
  const auto client = rig.Connect();
  for (int i = 0; i < 100; ++i)
    KVD_REQUIRE_OK(client->Put("key" + std::to_string(i), std::string(64, 'v')));
  std::string value;
  rig.kvd.Stop();
  for (int i = 0; i < 2000; ++i)
    KVD_REQUIRE_OK(client->Get("key" + std::to_string(i % 100), value));
  KVD_REQUIRE_CODE(client->Get("absent", value), kNotFound);
  KVD_REQUIRE_CODE(client->Put("key0", "late", {.deadline = milliseconds(200)}), kDeadlineExceeded);
  rig.kvd.Continue();
  REQUIRE(Eventually([&] { return client->Get("key0", value).ok() && value == "late"; }));
  KVD_REQUIRE_OK(client->Put("key0", "later"));
  REQUIRE(client->counters().gets_by_request == 0);
}

TEST_CASE(
    "RDMA: a small item is one READ when its bucket holds it, and one when its location is known") {
  Rig rig;
  const auto cold = rig.Connect();
  KVD_REQUIRE_OK(cold->Put("key", std::string(64, 'v')));
  std::string value;
  KVD_REQUIRE_OK(cold->Get("key", value));
  uint64_t reads = cold->counters().reads;
  for (int i = 0; i < 100; ++i) KVD_REQUIRE_OK(cold->Get("key", value));
  REQUIRE(cold->counters().reads - reads == 100);

  ClientOptions options;
  options.location_cache_entries = 64;
  const auto warm = rig.Connect(options);
  KVD_REQUIRE_OK(warm->Put("large", std::string(50'000, 'l')));
  reads = warm->counters().reads;
  for (int i = 0; i < 100; ++i) KVD_REQUIRE_OK(warm->Get("large", value));
  REQUIRE(warm->counters().reads - reads == 100);
}

TEST_CASE("RDMA: clients killed at any instant leave whole values and no session") {
  Rig rig;
  const auto observer = rig.Connect();
  Random random(Seed());
  std::string value;
  for (uint64_t round = 1; round <= 15; ++round) {
    const pid_t victim = StartVictim(rig.target(), round);
    usleep(static_cast<useconds_t>(random.Between(5'000, 120'000)));
    REQUIRE(KillVictim(victim));
    for (uint64_t key = 0; key < kVictimKeys; ++key) {
      const absl::Status status = observer->Get(HuntKey(key), value);
      INFO("key " << key << ": " << status);
      REQUIRE((absl::IsNotFound(status) || status.ok()));
      if (status.ok()) REQUIRE(CertifyHuntValue(key, value).has_value());
    }
  }
  REQUIRE(Eventually([&] { return Stat(*observer, "sessions") == 1; }));
}

TEST_CASE("RDMA: when kvd is killed every client gets an error, and finds the next kvd by itself") {
  Rig rig;
  ClientOptions options;
  options.location_cache_entries = 64;
  const auto client = rig.Connect(options);
  std::string value;
  for (int round = 0; round < 3; ++round) {
    const std::string wanted = "round " + std::to_string(round);
    KVD_REQUIRE_OK(client->Put("key", wanted));
    KVD_REQUIRE_OK(client->Get("key", value));
    REQUIRE(value == wanted);
    rig.kvd.Kill();
    const absl::Status lost = client->Get("key", value);
    INFO(lost);
    REQUIRE(absl::IsUnavailable(lost));
    rig.Start();
    REQUIRE(Eventually([&] { return absl::IsNotFound(client->Get("key", value)); }));
  }
}

TEST_CASE("RDMA: torn and replaced items are seen in great number, and never returned") {
  Rig rig;  // only to skip where there is no device
  rig.kvd.Kill();
  const std::string command =
      std::string(std::getenv("HUNT")) + " --kvd=" + std::getenv("KVD") + " --rdma=" + rig.address +
      " --seconds=150 --sightings=100 --readers=3 --keys=16 --seed=" + std::to_string(Seed()) +
      " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::map<std::string, uint64_t> counts;
  std::string output;
  char line[512];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) {
    output += line;
    std::istringstream words(line);
    std::string name;
    uint64_t count = 0;
    if (words >> name >> count) counts[name] = count;
  }
  const int status = pclose(pipe);
  INFO(output);
  REQUIRE(status == 0);
  REQUIRE(counts["wrong_answers"] == 0);
  REQUIRE(counts["torn_reads_seen"] >= 100);
  REQUIRE(counts["moved_items_seen"] >= 100);
}

TEST_CASE("RDMA: loss, delay, reordering and duplication slow things down and change nothing") {
  Rig rig;
  if (!rig.environment.disposable) KVD_SKIP("the network of this machine is left alone");
  const std::string faults =
      GENERATE("loss 1%", "delay 1ms 500us", "delay 1ms reorder 25% 50%", "duplicate 5%");
  CAPTURE(faults);
  const seconds patient(30);
  const auto writer = rig.Connect();
  const auto reader = rig.Connect();
  const Netem netem(rig.environment, faults);
  std::string wanted;
  std::string value;
  for (uint64_t generation = 1; generation <= 40; ++generation) {
    if (IsDelete(generation)) continue;
    const uint64_t key = generation % 4;  // 64 bytes, 2,000, and mixed sizes up to 128 KiB
    CAPTURE(generation);
    MakeHuntValue(key, generation, wanted);
    KVD_REQUIRE_OK(writer->Put(HuntKey(key), wanted, {.deadline = patient}));
    KVD_REQUIRE_OK(reader->Get(HuntKey(key), value, nullptr, {.deadline = patient}));
    REQUIRE(CertifyHuntValue(key, value) == generation);
  }
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

void RenewDevices(const RdmaEnvironment& environment) {
  for (const RdmaSide& side : environment.sides) {
    REQUIRE(std::system(("timeout 30 rdma link del " + side.device).c_str()) == 0);
    REQUIRE(std::system(
                ("rdma link add " + side.device + " type rxe netdev " + side.netdev).c_str()) == 0);
  }
}

// False: the kernel can connect nobody afterwards.
bool LinkGoesDownAndUp(Rig& rig, const std::string& netdev) {
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
  if (!go_on && !KernelConnects(rig.environment)) return false;
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
  return true;
}

TEST_CASE(
    "RDMA: a link that goes down under load ends sessions; after it is up clients go on by "
    "themselves") {
  const bool of_clients = GENERATE(true, false);
  for (bool again : {false, true}) {
    Rig rig;
    const RdmaEnvironment& environment = rig.environment;
    if (!environment.disposable || environment.sides.size() < 2)
      KVD_SKIP("links of this machine are left alone");
    const std::string netdev =
        of_clients ? environment.client().netdev : environment.server().netdev;
    CAPTURE(netdev);
    if (LinkGoesDownAndUp(rig, netdev)) return;
    std::cout << "the kernel itself connects nobody any more after " << netdev
              << " was down; the devices are renewed\n";
    REQUIRE_FALSE(again);
    rig.kvd.Kill();
    RenewDevices(environment);
  }
}

TEST_CASE("RDMA: IPv6 addresses work") {
  Rig rig;
  const std::string address = rig.environment.server().ipv6_address;
  if (address.empty()) KVD_SKIP("the device has no IPv6 address");
  rig.kvd.Kill();
  rig.flags[1] = "--listen=[" + address + "]:7711";
  rig.Start();
  const auto client = Client::Connect("rdma:[" + address + "]:7711");
  KVD_REQUIRE_OK(client);
  KVD_REQUIRE_OK((*client)->Put("key", "value"));
  std::string value;
  KVD_REQUIRE_OK((*client)->Get("key", value));
  REQUIRE(value == "value");
}

TEST_CASE("RDMA: nobody there, no such device, no leave: each says what to do") {
  Rig rig;
  const auto nobody = Client::Connect("rdma:" + rig.address + ":7999");
  INFO(nobody.status());
  REQUIRE(absl::IsUnavailable(nobody.status()));

  ClientOptions options;
  options.rdma_device = "nosuch0";
  const auto device = Client::Connect(rig.target(), options);
  INFO(device.status());
  REQUIRE_FALSE(device.ok());
  REQUIRE_THAT(MessageOf(device), Catch::Contains("nosuch0"));

  KvdProcess second;
  const absl::Status absent = second.Start(
      std::getenv("KVD"),
      {"--memory=16m", "--listen=" + rig.address + ":7800", "--insecure", "--device=nosuch0"});
  REQUIRE_THAT(MessageOf(absent), Catch::Contains("nosuch0"));
  const absl::Status insecure =
      second.Start(std::getenv("KVD"), {"--memory=16m", "--listen=" + rig.address + ":7800"});
  REQUIRE_THAT(MessageOf(insecure), Catch::Contains("--insecure"));
  const absl::Status taken = second.Start(
      std::getenv("KVD"), {"--memory=16m", "--listen=" + rig.address + ":7711", "--insecure"});
  REQUIRE_THAT(MessageOf(taken), Catch::Contains("7711"));
}

TEST_CASE("RDMA: GETs send kvd nothing") {
  Rig rig;
  const auto client = rig.Connect();
  KVD_REQUIRE_OK(client->Put("key", std::string(64, 'v')));
  const uint64_t requests = client->counters().requests;
  std::string value;
  for (int i = 0; i < 5000; ++i) KVD_REQUIRE_OK(client->Get("key", value));
  REQUIRE(client->counters().requests == requests);
  REQUIRE(Stat(*client, "requests_get") == 0);
}

// The last one, because it takes the device away.
TEST_CASE("RDMA: a device that is removed under load ends its sessions; shared memory goes on") {
  Rig rig;
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
  CHECK_THAT(rig.kvd.Log(), Catch::Contains("all sessions end") &&
                                Catch::Contains(side.device + " is being removed") &&
                                Catch::Contains(side.device + " is given back"));
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
