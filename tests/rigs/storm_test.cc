// Clients that come, write and read, and are killed, by the thousand: those that stay go on, values
// are whole, and kvd has everything back. KVD_STORM_CLIENTS says how many; the faults counted are
// printed.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "common/base/random.h"
#include "tests/stress/hunt_value.h"
#include "tests/stress/victims.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

uint64_t ClientsToKill() {
  const char* const text = std::getenv("KVD_STORM_CLIENTS");
  return text == nullptr ? 1000 : std::strtoull(text, nullptr, 10);
}

size_t MappingsOf(pid_t pid) {
  FILE* const file = std::fopen(("/proc/" + std::to_string(pid) + "/maps").c_str(), "r");
  REQUIRE(file != nullptr);
  size_t lines = 0;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) lines += c == '\n' ? 1 : 0;
  std::fclose(file);
  return lines;
}

void RequireWholeOrAbsent(Client& observer, std::string& value) {
  for (uint64_t key = 0; key < kVictimKeys; ++key) {
    const absl::Status status = observer.Get(HuntKey(key), value);
    INFO("key " << key << ": " << status);
    REQUIRE((absl::IsNotFound(status) || status.ok()));
    if (status.ok()) REQUIRE(CertifyHuntValue(key, value).has_value());
  }
}

}  // namespace

TEST_CASE(
    "Storm: thousands of clients that are killed at any instant leave nothing, and others go on") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=64m", "--pollers=2"}));
  const auto observer = ConnectTo(kvd);
  const auto bystander = ConnectTo(kvd);
  // Maybe one more, of whoever looked whether kvd listens.
  const size_t descriptors = OpenDescriptors(kvd.pid());
  // What it once took for as many clients as there are at once it keeps.
  Random random(Seed());
  std::string value;
  constexpr size_t kAtOnce = 8;
  std::array<pid_t, kAtOnce> victims{};
  for (pid_t& victim : victims) victim = StartVictim(kvd.target(), random.Next());
  REQUIRE(Eventually([&] { return Stat(*observer, "sessions") == 2 + kAtOnce; }));
  for (const pid_t victim : victims) REQUIRE(KillVictim(victim));
  REQUIRE(Eventually([&] { return Stat(*observer, "sessions") == 2; }));
  KVD_REQUIRE_OK(observer->Flush("").status());
  REQUIRE(Eventually([&] { return Stat(*observer, "heap_used_bytes") == 0; }));
  const size_t mappings = MappingsOf(kvd.pid());

  const uint64_t wanted = ClientsToKill();
  uint64_t killed = 0;
  victims.fill(0);
  while (killed < wanted) {
    pid_t& victim = victims[random.Uniform(kAtOnce)];
    if (victim != 0) {
      usleep(static_cast<useconds_t>(random.Uniform(2000)));
      REQUIRE(KillVictim(victim));
      ++killed;
    }
    victim = StartVictim(kvd.target(), random.Next());
    if (killed % 16 != 0) continue;
    KVD_REQUIRE_OK(bystander->Put("bystander", "goes on"));
    KVD_REQUIRE_OK(bystander->Get("bystander", value));
    REQUIRE(value == "goes on");
    RequireWholeOrAbsent(*observer, value);
  }
  for (const pid_t victim : victims) {
    if (victim != 0) static_cast<void>(KillVictim(victim));
  }
  REQUIRE(Eventually([&] { return Stat(*observer, "sessions") == 2; }));
  KVD_REQUIRE_OK(observer->Flush("").status());
  // The last sessions' descriptors are closed by a thread of their own.
  REQUIRE(Eventually([&] { return OpenDescriptors(kvd.pid()) <= descriptors; }));
  REQUIRE(Eventually([&] { return Stat(*observer, "heap_used_bytes") == 0; }));
  // Each session has some; malloc may have taken a few for itself.
  CHECK(MappingsOf(kvd.pid()) < mappings + 16);
  CHECK(Stat(*observer, "malformed") == 0);
  std::cout << "client_kills " << killed << "\n";
}

TEST_CASE(
    "Storm: more connect at once than there are descriptors for: refused with a reason, and the "
    "others go on") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=16m"}));
  const auto first = ConnectTo(kvd);
  KVD_REQUIRE_OK(first->Put("key", "value"));
  const rlimit few{OpenDescriptors(kvd.pid()) + 40, 4096};
  REQUIRE(prlimit(kvd.pid(), RLIMIT_NOFILE, &few, nullptr) == 0);
  ClientOptions impatient;
  impatient.wait_for_server = false;
  std::vector<std::unique_ptr<Client>> clients;
  absl::Status refused;
  for (int i = 0; i < 200 && refused.ok(); ++i) {
    auto client = Client::Connect(kvd.target(), impatient);
    refused = client.status();
    if (client.ok()) clients.push_back(*std::move(client));
  }
  INFO(refused);
  CHECK(absl::IsUnavailable(refused));
  CHECK_THAT(MessageOf(refused), Catch::Contains("open files") || Catch::Contains("descriptors"));
  std::string value;
  KVD_REQUIRE_OK(first->Get("key", value));
  KVD_REQUIRE_OK(first->Put("key", "goes on"));
  std::cout << "refused_connects 1\n";
  clients.clear();
  REQUIRE(Eventually([&] { return Client::Connect(kvd.target(), impatient).ok(); }));
}

}  // namespace kvd::test
