// A real kvd and real clients over RDMA: what it promises over shared memory holds here too, and
// the NIC does the GETs.
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/kv_client.h"
#include "common/base/random.h"
#include "tests/softroce/rdma_environment.h"
#include "tests/stress/hunt_value.h"
#include "tests/stress/rdma_rig.h"
#include "tests/stress/victims.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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

}  // namespace

TEST_CASE("RDMA: items of every size go there and back, and shared memory sees the same ones") {
  RdmaRig rig;
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
  RdmaRig rig;
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
  RdmaRig rig;
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
  RdmaRig rig;
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
  RdmaRig rig;
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
  RdmaRig rig;  // only to skip where there is no device
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
  // As many as --sightings, unless --seconds were too few on a slow machine.
  REQUIRE(counts["torn_reads_seen"] >= 20);
  REQUIRE(counts["moved_items_seen"] >= 20);
}

TEST_CASE("RDMA: loss, delay, reordering and duplication slow things down and change nothing") {
  RdmaRig rig;
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

TEST_CASE("RDMA: IPv6 addresses work") {
  RdmaRig rig;
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
  RdmaRig rig;
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
  RdmaRig rig;
  const auto client = rig.Connect();
  KVD_REQUIRE_OK(client->Put("key", std::string(64, 'v')));
  const uint64_t requests = client->counters().requests;
  std::string value;
  for (int i = 0; i < 5000; ++i) KVD_REQUIRE_OK(client->Get("key", value));
  REQUIRE(client->counters().requests == requests);
  REQUIRE(Stat(*client, "requests_get") == 0);
}

}  // namespace kvd::test
