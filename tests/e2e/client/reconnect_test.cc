// What a client does when its session breaks: the same kvd, a new one, or none.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "client/kv_client.h"
#include "common/base/random.h"
#include "tests/e2e/client/broken_sessions.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Kvd() { return getenv("KVD"); }

}  // namespace

TEST_CASE("Client: writes whose session breaks under them take effect once") {
  KvdProcess kvd;
  const std::string pollers = GENERATE("1", "2");
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=64m", "--pollers=" + pollers}));
  ClientOptions options;
  options.deadline = seconds(60);
  const auto client = Client::Connect(kvd.target(), options).value();
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::atomic<int> breaks{0};
  std::thread breaker([&] {
    // Once after each write that came through, so that the client gets somewhere.
    for (int broken_at = 0; !stop;) {
      if (const int now = written.load(); now != broken_at) {
        broken_at = now;
        BreakSessions();
        ++breaks;
      }
      std::this_thread::yield();
    }
  });
  absl::Status first_error;
  int64_t last = 0;
  uint64_t large_versions = 0;
  std::string appended;
  const std::string large(60'000, 'x');
  // As many more as it takes for the other thread to have had its turns.
  for (int i = 1; i <= 400 || breaks < 50; ++i) {
    const auto incremented = client->Increment("n", 1);
    if (!incremented.ok() || incremented->value != i) {
      first_error = incremented.ok() ? absl::InternalError("counted twice or not at all")
                                     : incremented.status();
      break;
    }
    last = incremented->value;
    written = i;
    std::string touched;
    if (const absl::Status status = client->GetAndTouch("n", touched, nullptr, {});
        !status.ok() || touched != std::to_string(i)) {
      first_error = status.ok() ? absl::InternalError("touched another value: " + touched) : status;
      break;
    }
    if (i % 20 == 0 && i <= 400) {  // pulled ones, too
      const auto put = client->Append("large", large);
      if (!put.ok()) first_error = put.status();
      ++large_versions;
    }
  }
  stop = true;
  breaker.join();
  CHECK(first_error == absl::OkStatus());
  CHECK(last >= 400);
  CHECK(client->Get("n").value() == std::to_string(last));
  CHECK(client->Get("large").value().size() == large_versions * large.size());
  CHECK(client->counters().reconnects > 0);
}

TEST_CASE(
    "Client: a write that was sent to a kvd that is gone is unknown, and the client goes on with "
    "the next kvd") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=64m"}));
  ClientOptions options;
  options.deadline = seconds(60);
  const auto client = Client::Connect(kvd.target(), options).value();
  KVD_REQUIRE_OK(client->Put("k", "old"));
  kvd.Stop();
  client->StartIncrement("n", 1, Async{1, {}});
  Completion completion;
  CHECK(client->Poll(std::span(&completion, 1)) == 0);
  kvd.Kill();
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=64m"}));
  REQUIRE(client->Wait(std::span(&completion, 1), seconds(60)) == 1);
  CHECK(absl::IsUnknown(completion.status));
  // Nothing of the earlier one is believed, and nothing has to be done for it.
  KVD_REQUIRE_CODE(client->Get("k"), kNotFound);
  KVD_REQUIRE_OK(client->Put("k", "new"));
  CHECK(client->Get("k").value() == "new");
  CHECK(client->counters().reconnects >= 1);
}

TEST_CASE("Client: what it remembers of places is good in the next session with the same kvd") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=64m"}));
  ClientOptions options;
  options.deadline = seconds(60);
  options.location_cache_entries = 16;
  const auto client = Client::Connect(kvd.target(), options).value();
  KVD_REQUIRE_OK(client->Put("k", "v"));
  BreakSessions();
  // Requests notice it, though kvd may answer some before; a GET over shared memory need not.
  while (client->counters().reconnects == 0) KVD_REQUIRE_OK(client->Ping());
  CHECK(client->counters().reconnects == 1);
  CHECK(client->Get("k").value() == "v");
  CHECK(client->counters().location_hits == 1);
}

TEST_CASE(
    "Client: places of a kvd that is gone lead to nothing in the next one, which is smaller") {
  constexpr size_t kItems = 200;
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=256m"}));
  ClientOptions options;
  options.deadline = seconds(60);
  options.location_cache = MakeLocationCache(1 << 20).value();
  const auto first = Client::Connect(kvd.target(), options).value();
  const auto second = Client::Connect(kvd.target(), options).value();
  const auto key = [](size_t i) { return "key" + std::to_string(i); };
  // Long enough to lie at the end of the region.
  for (size_t i = 0; i < kItems; ++i) KVD_REQUIRE_OK(first->Put(key(i), std::string(2000, 'o')));
  CHECK(second->Get("key1").value() == std::string(2000, 'o'));
  const uint64_t hits = second->counters().location_hits;
  CHECK(hits == 1);
  kvd.Kill();
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=16m"}));
  KVD_REQUIRE_CODE(second->Get("key0"), kNotFound);
  for (size_t i = 1; i < kItems; i += 2) KVD_REQUIRE_OK(first->Put(key(i), std::to_string(i)));
  size_t right = 0;
  for (size_t i = 0; i < kItems; ++i) {
    const auto got = second->Get(key(i));
    right += i % 2 == 0 ? absl::IsNotFound(got.status()) : got.ok() && *got == std::to_string(i);
  }
  CHECK(right == kItems);
  // What was written since then is remembered as before.
  CHECK(second->counters().location_hits > hits);
  CHECK(second->counters().reconnects == 1);
}

TEST_CASE("Client: a touched value whose kvd dies while it is read is looked for in the next one") {
  constexpr size_t kBytes = 64 << 20;
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=300m"}));
  ClientOptions options;
  options.deadline = seconds(60);
  const auto client = Client::Connect(kvd.target(), options).value();
  KVD_REQUIRE_OK(client->Put("k", std::string(kBytes, 'x')));
  const auto watcher = Client::Connect(kvd.target(), options).value();
  absl::Status touched;
  std::string value;
  std::atomic<bool> returned{false};
  std::thread toucher([&] {
    touched = client->GetAndTouch("k", value, nullptr, {.ttl = seconds(3600)});
    returned = true;
  });
  // The TOUCH has been answered, so all that is left is to read 64 MiB.
  const auto answered = [&] {
    const auto statistics = watcher->Stats().value();
    return std::any_of(statistics.begin(), statistics.end(), [](const auto& one) {
      return one.first == "expiring_items" && one.second == "1";
    });
  };
  while (!answered() && !returned) continue;
  kvd.Kill();
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=300m"}));
  toucher.join();
  CHECK((absl::IsNotFound(touched) || (touched.ok() && value.size() == kBytes)));
}

TEST_CASE("Client: operations wait for a kvd that comes back, up to their deadline") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=64m"}));
  ClientOptions options;
  options.deadline = seconds(60);
  const auto client = Client::Connect(kvd.target(), options).value();
  kvd.Kill();
  const auto refused = client->Put("k", "v", {.deadline = milliseconds(30)});
  KVD_REQUIRE_CODE(refused, kUnavailable);
  KVD_REQUIRE_CODE(client->Get("k", {milliseconds(30)}), kUnavailable);
  std::vector<GetResult> results(2);
  const std::vector<std::string_view> keys = {"k", "l"};
  KVD_REQUIRE_OK(client->MultiGet(keys, results, {milliseconds(30)}));
  CHECK(absl::IsUnavailable(results[0].status));
  std::thread starter([&kvd] { KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=64m"})); });
  const auto put = client->Put("k", "v");
  starter.join();
  KVD_REQUIRE_OK(put);
  CHECK(client->Get("k").value() == "v");
}

TEST_CASE("Client: one that does not wait for its server says at once that there is none") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=64m"}));
  ClientOptions options;
  options.deadline = seconds(600);
  options.wait_for_server = false;
  const auto client = Client::Connect(kvd.target(), options).value();
  kvd.Stop();
  client->StartPut("k", "v", Async{1, {}});
  client->StartGet("k", Async{2, {}});
  client->Poll({});
  kvd.Kill();
  KVD_REQUIRE_CODE(client->Get("k"), kUnavailable);
  KVD_REQUIRE_CODE(client->Put("k", "v"), kUnavailable);
  std::vector<Completion> completions(4);
  size_t count = client->Wait(completions, seconds(600));
  while (client->outstanding() != 0)
    count += client->Wait(std::span(completions).subspan(count), seconds(600));
  REQUIRE(count == 2);
  for (size_t i = 0; i < count; ++i) {
    CHECK((completions[i].tag == 1 ? absl::IsUnknown(completions[i].status)
                                   : absl::IsNotFound(completions[i].status) ||
                                         absl::IsUnavailable(completions[i].status)));
  }
}

TEST_CASE("Client: a server that cannot be reached is never taken for a key that is not there") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=64m"}));
  // Where there is no RDMA the second way fails in a way of its own.
  const std::string other = GENERATE("rdma:127.0.0.1:7719", "shm:/nonexistent/kvd.sock");
  KVD_REQUIRE_CODE(Client::Connect(other), kUnavailable);
  const auto client = Client::Connect(kvd.target() + "," + other).value();
  KVD_REQUIRE_OK(client->Put("k", "v"));
  kvd.Kill();
  const OperationOptions soon{milliseconds(20)};
  KVD_REQUIRE_CODE(client->Get("k", soon), kUnavailable);
  KVD_REQUIRE_CODE(client->Exists("k", soon), kUnavailable);
  KVD_REQUIRE_CODE(client->Delete("k", {.deadline = milliseconds(20)}), kUnavailable);
  KVD_REQUIRE_CODE(client->Put("k", "v", {.deadline = milliseconds(20)}), kUnavailable);
}

TEST_CASE(
    "Client: of several ways to a kvd the first that works is taken, and a better one when it is "
    "back") {
  KvdProcess kvd;
  KVD_REQUIRE_OK(kvd.Start(Kvd(), {"--memory=64m"}));
  const std::string detour = kvd.socket_path() + ".detour";
  const auto client = Client::Connect("shm:" + detour + "," + kvd.target()).value();
  KVD_REQUIRE_OK(client->Put("k", "v"));
  CHECK(client->target() == "shm:" + detour + "," + kvd.target());
  CHECK(client->counters().reconnects == 0);
  REQUIRE(link(kvd.socket_path().c_str(), detour.c_str()) == 0);
  while (client->counters().reconnects == 0) KVD_REQUIRE_OK(client->Put("k", "v"));
  CHECK(client->counters().reconnects == 1);
  CHECK(client->Get("k").value() == "v");
  KVD_REQUIRE_CODE(Client::Connect("shm:/nonexistent/a,shm:/nonexistent/b"), kUnavailable);
  KVD_REQUIRE_CODE(Client::Connect(kvd.target() + ",:bad:"), kInvalidArgument);
}

}  // namespace kvd::test
