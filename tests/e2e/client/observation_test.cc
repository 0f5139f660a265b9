// What a client tells of itself, to its own thread and to others, over a real kvd.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "client/kv_client.h"
#include "tests/e2e/client/broken_sessions.h"
#include "tests/support/kvd_process.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Fixture {
  Fixture() { KVD_REQUIRE_OK(kvd.Start(getenv("KVD"), {"--memory=64m"})); }

  std::unique_ptr<Client> Connect(ClientOptions options) {
    options.deadline = seconds(60);
    auto client = Client::Connect(kvd.target(), options);
    KVD_REQUIRE_OK(client);
    return *std::move(client);
  }

  KvdProcess kvd;
};

ClientOptions Each() {
  ClientOptions options;
  options.latency_sampling = 1;
  options.location_cache_entries = 1024;
  return options;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "Client: with a sampling of 1 each operation is timed, by its kind") {
  const auto writer = Connect({});
  KVD_REQUIRE_OK(writer->Put("k", "v"));
  const auto client = Connect(Each());
  std::string value;
  KVD_REQUIRE_OK(client->Get("k", value));  // cold
  KVD_REQUIRE_OK(client->Get("k", value));  // where it is known to lie
  KVD_REQUIRE_OK(client->Exists("k").status());
  CHECK(absl::IsNotFound(client->Get("none", value)));
  KVD_REQUIRE_OK(client->Put("k", "w").status());
  KVD_REQUIRE_OK(client->Delete("k"));
  CHECK(absl::IsNotFound(client->Delete("k")));  // an answer too
  CHECK_FALSE(client->Put("", "").ok());         // none
  const std::vector<std::string_view> keys = {"k", "none"};
  std::vector<GetResult> results(2);
  KVD_REQUIRE_OK(client->MultiGet(keys, results));
  const std::vector<PutRequest> puts = {{"a", "1"}, {"b", "2"}};
  for (const auto& put : client->MultiPut(puts)) KVD_REQUIRE_OK(put.status());
  KVD_REQUIRE_OK(client->Ping().status());
  client->StartPut("s", "1", Async{});
  Completion completion;
  REQUIRE(client->Wait({&completion, 1}, seconds(60)) == 1);
  client->StartGet("s", Async{});
  REQUIRE(client->Wait({&completion, 1}, seconds(60)) == 1);

  const ClientObservation seen = client->Observe();
  CHECK(seen.known_gets.count == 3);
  CHECK(seen.cold_gets.count == 1);
  CHECK(seen.missed_gets.count == 3);  // MultiGet looks for what it misses key by key
  CHECK(seen.multi_gets.count == 1);
  CHECK(seen.writes.count == 4);
  CHECK(seen.multi_writes.count == 1);
  CHECK(seen.requests.count == 1);
  CHECK(seen.known_gets.min_ns > 0);
  CHECK(seen.known_gets.min_ns <= seen.known_gets.p50_ns);
  CHECK(seen.known_gets.p50_ns <= seen.known_gets.max_ns);
  CHECK(seen.counters.gets == client->counters().gets);
  CHECK(seen.counters.hits == client->counters().hits);
  CHECK(seen.connection_errors == 0);
  CHECK(seen.first_error.cause.ok());
}

TEST_CASE_METHOD(Fixture, "Client: by default a part is timed, and nothing with a sampling of 0") {
  const auto client = Connect({});
  KVD_REQUIRE_OK(client->Put("k", "v"));
  std::string value;
  constexpr uint64_t kGets = 10'000;
  for (uint64_t i = 0; i < kGets; ++i) KVD_REQUIRE_OK(client->Get("k", value));
  const ClientObservation seen = client->Observe();
  CHECK(seen.cold_gets.count > kGets / 128);
  CHECK(seen.cold_gets.count < kGets / 32);
  CHECK(seen.counters.gets > kGets - 600);
  CHECK(seen.counters.gets <= kGets);

  ClientOptions off;
  off.latency_sampling = 0;
  const auto untimed = Connect(off);
  for (uint64_t i = 0; i < kGets; ++i) KVD_REQUIRE_OK(untimed->Get("k", value));
  KVD_REQUIRE_OK(untimed->Put("k", "v"));
  KVD_REQUIRE_OK(untimed->Ping().status());
  const ClientObservation without = untimed->Observe();
  CHECK(without.cold_gets.count + without.writes.count + without.requests.count == 0);
  CHECK(without.counters.gets > kGets - 600);
}

TEST_CASE_METHOD(Fixture, "Client: other threads see it move while it works") {
  const auto client = Connect(Each());
  KVD_REQUIRE_OK(client->Put("k", "v"));
  std::atomic<bool> enough{false};
  bool fell = false;
  std::thread watcher([&] {
    // Until it has seen two different numbers of GETs, the later one larger.
    uint64_t last = 0;
    for (int grown = 0; grown < 100;) {
      const ClientObservation seen = client->Observe();
      fell = fell || seen.counters.gets < last;
      grown += seen.counters.gets > last ? 1 : 0;
      last = seen.counters.gets;
    }
    enough = true;
  });
  std::string value;
  bool all_ok = true;
  while (!enough) all_ok = all_ok && client->Get("k", value).ok();
  watcher.join();
  CHECK(all_ok);
  CHECK_FALSE(fell);
}

TEST_CASE_METHOD(Fixture,
                 "Client: the first error of each connection is reported, once, with its cause") {
  std::vector<ConnectionError> reported;
  ClientOptions options;
  options.on_connection_error = [&](const ConnectionError& error) { reported.push_back(error); };
  const auto client = Connect(options);
  KVD_REQUIRE_OK(client->Put("k", "v"));
  CHECK(reported.empty());

  kvd.Kill();
  OperationOptions soon;
  soon.deadline = milliseconds(300);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(client->Get("k", soon).ok());
  REQUIRE(reported.size() == 1);
  CHECK(reported[0].target == kvd.target());
  CHECK_THAT(std::string(reported[0].cause.message()), Catch::Contains("the server went away"));
  CHECK_THAT(reported[0].remedy, Catch::Contains("whether kvd runs"));
  // The attempts to connect that failed as well are counted.
  const uint64_t errors = client->Observe().connection_errors;
  CHECK(errors > 1);
  CHECK(client->Observe().first_error.cause == reported[0].cause);

  KVD_REQUIRE_OK(kvd.Start(getenv("KVD"), {"--memory=64m"}));
  KVD_REQUIRE_OK(client->Put("k", "v").status());
  CHECK(reported.size() == 1);  // a connection that works reports nothing
  const uint64_t reconnects = client->counters().reconnects;
  REQUIRE(BreakSessions() > 0);
  // An answer may have been there already; it is noticed sooner or later.
  while (client->counters().reconnects == reconnects) {
    KVD_REQUIRE_OK(client->Put("k", "w").status());
  }
  CHECK(reported.size() == 2);  // and the next one anew
}

}  // namespace kvd::test
