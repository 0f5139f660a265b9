// Processes that die or stop at any instant: what the others see, and what comes back.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
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

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

TEST_CASE("Kill: clients killed at any instant leave whole values and no trace in kvd") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=64m"}));
  const auto observer = ConnectTo(kvd);
  REQUIRE(Eventually([&] { return Stat(*observer, "sessions") == 1; }));
  const size_t descriptors = OpenDescriptors(kvd.pid());
  const uint64_t free_bytes = Stat(*observer, "free_bytes");

  Random random(Seed());
  std::string value;
  for (uint64_t round = 1; round <= 100; ++round) {
    std::vector<pid_t> victims;
    for (uint64_t i = 0; i < 2; ++i) victims.push_back(StartVictim(kvd.target(), round * 2 + i));
    usleep(static_cast<useconds_t>(random.Between(1000, 15'000)));
    for (const pid_t victim : victims) REQUIRE(KillVictim(victim));
    for (uint64_t key = 0; key < kVictimKeys; ++key) {
      const absl::Status status = observer->Get(HuntKey(key), value);
      INFO("key " << key << ": " << status);
      REQUIRE((absl::IsNotFound(status) || status.ok()));
      if (status.ok()) REQUIRE(CertifyHuntValue(key, value).has_value());
    }
  }

  REQUIRE(Eventually([&] { return Stat(*observer, "sessions") == 1; }));
  for (uint64_t key = 0; key < kVictimKeys; ++key) static_cast<void>(observer->Delete(HuntKey(key)));
  // Fewer, where one was counted of whoever looked whether kvd listens, and left.
  REQUIRE(Eventually([&] { return OpenDescriptors(kvd.pid()) <= descriptors; }));
  REQUIRE(Stat(*observer, "items") == 0);
  // The heap may keep one span per size class for the next item.
  REQUIRE(free_bytes - Stat(*observer, "free_bytes") <= (uint64_t{6} << 20));
}

TEST_CASE("Kill: when kvd is killed every client gets an error, and finds the next kvd by itself") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=64m"}));
  ClientOptions remembering;
  remembering.location_cache_entries = 64;
  const auto reader = ConnectTo(kvd, remembering);
  const auto writer = ConnectTo(kvd);
  std::string value;
  for (int round = 0; round < 20; ++round) {
    KVD_REQUIRE_OK(writer->Put("key", "round " + std::to_string(round)));
    KVD_REQUIRE_OK(reader->Get("key", value));
    REQUIRE(value == "round " + std::to_string(round));

    kvd.Kill();
    // The region is still mapped and holds the value: it must not be returned.
    const OperationOptions soon{milliseconds(20)};
    KVD_REQUIRE_CODE(reader->Get("key", value, nullptr, soon), kUnavailable);
    KVD_REQUIRE_CODE(writer->Put("key", "lost", {.deadline = milliseconds(20)}), kUnavailable);
    KVD_REQUIRE_CODE(reader->Get("key", value, nullptr, soon), kUnavailable);

    KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=64m"}));
    REQUIRE(Eventually([&] { return writer->Ping().ok(); }));
    REQUIRE(Eventually([&] { return absl::IsNotFound(reader->Get("key", value)); }));
  }
}

TEST_CASE("Kill: a write that was on its way when kvd was killed has an unknown outcome") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=64m"}));
  const auto client = ConnectTo(kvd);
  kvd.Stop();
  const pid_t killer = fork();
  if (killer == 0) {
    usleep(50'000);
    kvd.Signal(SIGKILL);
    std::_Exit(0);
  }
  const absl::Status status = client->Put("key", "value").status();
  waitpid(killer, nullptr, 0);
  KVD_REQUIRE_CODE(status, kUnknown);
}

TEST_CASE("Kill: GETs go on while kvd is stopped, and writes time out") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=64m"}));
  const auto client = ConnectTo(kvd);
  KVD_REQUIRE_OK(client->Put("key", "before"));
  kvd.Stop();
  std::string value;
  for (int i = 0; i < 10'000; ++i) {
    KVD_REQUIRE_OK(client->Get("key", value));
    REQUIRE(value == "before");
  }
  KVD_REQUIRE_CODE(client->Get("absent", value), kNotFound);
  KVD_REQUIRE_CODE(client->Put("key", "after", {.deadline = milliseconds(100)}), kDeadlineExceeded);
  kvd.Continue();
  // The write that timed out takes effect once; the session is as good as before.
  REQUIRE(Eventually([&] { return client->Get("key", value).ok() && value == "after"; }));
  KVD_REQUIRE_OK(client->Put("key", "later"));
  KVD_REQUIRE_OK(client->Get("key", value));
  REQUIRE(value == "later");
}

TEST_CASE("Kill: a large PUT that timed out does not lend its buffer to the next one") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=64m"}));
  const auto client = ConnectTo(kvd);
  const std::string first(1 << 20, 'a');
  const std::string second(1 << 20, 'b');
  kvd.Stop();
  KVD_REQUIRE_CODE(client->Put("first", first, {.deadline = milliseconds(50)}), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Put("second", second, {.deadline = milliseconds(50)}), kDeadlineExceeded);
  kvd.Continue();
  KVD_REQUIRE_OK(client->Ping({.deadline = seconds(10)}));
  std::string value;
  REQUIRE(Eventually([&] { return client->Get("second", value).ok(); }));
  REQUIRE(value == second);
  KVD_REQUIRE_OK(client->Get("first", value));
  REQUIRE(value == first);
}

TEST_CASE("Kill: GETs never reach kvd") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=64m"}));
  const auto client = ConnectTo(kvd);
  for (int i = 0; i < 100; ++i) KVD_REQUIRE_OK(client->Put("key" + std::to_string(i), std::string(64, 'v')));
  const uint64_t requests = client->counters().requests;
  std::string value;
  for (int i = 0; i < 100'000; ++i) KVD_REQUIRE_OK(client->Get("key" + std::to_string(i % 100), value));
  KVD_REQUIRE_CODE(client->Get("absent", value), kNotFound);
  REQUIRE(client->counters().requests == requests);
  REQUIRE(client->counters().gets_by_request == 0);
}

TEST_CASE("Kill: a child of fork() must not use its parent's client") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(std::getenv("KVD"), {"--memory=64m"}));
  auto client = ConnectTo(kvd);
  const std::string large(1 << 20, 'l');
  KVD_REQUIRE_OK(client->Put("large", large));
  KVD_REQUIRE_OK(client->Put("key", "value"));
  int called = 0;
  client->StartGet("key", Async{1, [&](Completion&) { ++called; }});
  const pid_t child = fork();
  if (child == 0) {
    std::string value;
    absl::Status started;
    client->StartGet("key", Async{2, [&](Completion& completion) { started = completion.status; }});
    client->StartPut("key", "child", Async{3, {}});
    Completion completion;
    size_t came = 0;
    while (client->outstanding() != 0 && came < 10) came += client->Wait({&completion, 1}, std::chrono::seconds(1));
    if (came != 2 || called != 0 || completion.tag != 3 || !absl::IsFailedPrecondition(completion.status) ||
        !absl::IsFailedPrecondition(started)) {
      std::_Exit(2);
    }
    const bool refused = absl::IsFailedPrecondition(client->Get("key", value)) &&
                         absl::IsFailedPrecondition(client->Put("key", "child").status());
    const bool own_works = Client::Connect(kvd.target()).ok();
    client.reset();
    std::_Exit(refused && own_works ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(status == 0);
  while (client->outstanding() != 0) client->Wait({}, std::chrono::seconds(1));
  REQUIRE(called == 1);
  KVD_REQUIRE_OK(client->Put("key", "parent"));
  // The buffer from which kvd pulls large values was made before fork().
  KVD_REQUIRE_OK(client->Put("large", large));
  std::string value;
  KVD_REQUIRE_OK(client->Get("key", value));
  REQUIRE(value == "parent");
}

}  // namespace kvd::test
