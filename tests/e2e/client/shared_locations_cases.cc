// What clients promise that remember together where items lie (MakeLocationCache).
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/kv_client.h"
#include "common/base/random.h"
#include "tests/e2e/client/kvd_under_test.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr uint64_t kEntriesMax = uint64_t{1} << 30;

ClientOptions Sharing(std::shared_ptr<LocationCache> cache) {
  ClientOptions options;
  options.location_cache = std::move(cache);
  return options;
}

std::string KeyOf(size_t number) { return "key" + std::to_string(number); }

// What the threads of the last case know of one key. Its generations are 1, 2, 3 and so on, and
// every eighth of them is a deletion.
struct Score {
  std::atomic<uint64_t> begun{0};
  std::atomic<uint64_t> done{0};
};
bool IsDeletion(uint64_t generation) { return generation % 8 == 0; }

// Says whose it is and which; of sizes that lie in a bucket and of sizes that do not.
std::string ValueOf(size_t key, uint64_t generation) {
  std::string value = std::to_string(key) + ":" + std::to_string(generation) + ":";
  value.append(generation % 3 == 0 ? 2000 : generation % 5 * 16, static_cast<char>('a' + key % 26));
  return value;
}

// The generation of a value that is whole and the key's; 0: it is none.
uint64_t GenerationOf(size_t key, std::string_view value) {
  const size_t colon = value.find(':');
  uint64_t generation = 0;
  if (colon == std::string_view::npos) return 0;
  const std::string_view rest = value.substr(colon + 1);
  const std::string number(rest.substr(0, rest.find(':')));
  return absl::SimpleAtoi(number, &generation) && value == ValueOf(key, generation) ? generation
                                                                                    : 0;
}

constexpr size_t kKeys = 64;
using Scores = std::array<Score, kKeys>;

// Ok, or what was wrong with what one GET returned.
absl::Status Judge(size_t key, const absl::Status& got, std::string_view value, uint64_t from,
                   uint64_t to) {
  if (absl::IsNotFound(got)) {
    bool may_be = from == 0;
    for (uint64_t generation = from; generation <= to; ++generation)
      may_be |= IsDeletion(generation);
    return may_be ? absl::OkStatus() : absl::InternalError("a key that is there was not found");
  }
  if (!got.ok()) return got;
  const uint64_t generation = GenerationOf(key, value);
  if (generation == 0) return absl::InternalError("another value");
  if (generation < from) return absl::InternalError("an old value");
  return generation <= to ? absl::OkStatus() : absl::InternalError("a value not written yet");
}

absl::Status ReadUntil(const std::atomic<bool>& stop, Client& client, Scores& scores,
                       uint64_t seed) {
  Random random(seed);
  std::string value;
  while (!stop) {
    const size_t key = random.Uniform(kKeys);
    const uint64_t from = scores[key].done;
    const absl::Status got = client.Get(KeyOf(key), value);
    absl::Status judged = Judge(key, got, value, from, scores[key].begun);
    if (!judged.ok()) return judged;
  }
  return absl::OkStatus();
}

absl::Status WriteNext(Client& client, size_t key, Score& score) {
  const uint64_t generation = ++score.begun;
  absl::Status status = IsDeletion(generation)
                            ? client.Delete(KeyOf(key))
                            : client.Put(KeyOf(key), ValueOf(key, generation)).status();
  score.done = generation;
  return status;
}

// Many keys that come in half of a breath's rounds and go in the other half: the table grows under
// the readers and shrinks again.
constexpr size_t kBreath = 48;

absl::Status Breathe(Client& client, size_t round) {
  constexpr size_t kBatch = 512;
  const size_t at = round % kBreath;
  const bool come = at < kBreath / 2;
  const size_t batch = come ? at : kBreath - 1 - at;
  std::vector<std::string> names;
  for (size_t i = 0; i < kBatch; ++i) names.push_back("more" + std::to_string(batch * kBatch + i));
  if (come) {
    std::vector<PutRequest> puts;
    for (const std::string& name : names) puts.push_back({name, "0123456789012345678901234567890"});
    for (const auto& put : client.MultiPut(puts)) {
      if (!put.ok()) return put.status();
    }
    return absl::OkStatus();
  }
  const std::vector<std::string_view> keys(names.begin(), names.end());
  for (const absl::Status& status : client.MultiDelete(keys)) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

TEST_CASE("Shared locations: a size out of range, and a cache besides a shared one, are refused") {
  const KvdUnderTest kvd({"--memory=64m"});
  KVD_REQUIRE_CODE(MakeLocationCache(0), kInvalidArgument);
  KVD_REQUIRE_CODE(MakeLocationCache(kEntriesMax + 1), kInvalidArgument);
  ClientOptions options = Sharing(MakeLocationCache(1).value());
  KVD_REQUIRE_OK(Client::Connect(kvd.target(), options));
  options.location_cache_entries = 1;
  KVD_REQUIRE_CODE(Client::Connect(kvd.target(), options), kInvalidArgument);
  options.location_cache = nullptr;
  KVD_REQUIRE_OK(Client::Connect(kvd.target(), options));
  options.location_cache_entries = kEntriesMax + 1;
  KVD_REQUIRE_CODE(Client::Connect(kvd.target(), options), kInvalidArgument);
}

TEST_CASE("Shared locations: a client finds at once what only another one has read or written") {
  constexpr size_t kItems = 100;
  const KvdUnderTest kvd({"--memory=64m"});
  const auto writer = kvd.Connect();  // remembers nothing
  ClientOptions options = Sharing(MakeLocationCache(1 << 20).value());
  const auto first = kvd.Connect(options);
  const auto second = kvd.Connect(options);
  options.location_cache = nullptr;  // the clients keep it
  const auto get_all = [&](Client& client, const std::string& value) {
    const uint64_t before = client.counters().location_hits;
    size_t right = 0;
    for (size_t i = 0; i < kItems; ++i) {
      const auto got = client.Get(KeyOf(i));
      right += got.ok() && *got == value ? 1 : 0;
    }
    CHECK(right == kItems);
    return client.counters().location_hits - before;
  };
  const auto put_all = [&](Client& client, const std::string& value) {
    for (size_t i = 0; i < kItems; ++i) KVD_REQUIRE_OK(client.Put(KeyOf(i), value));
  };
  // Of two keys that fall on one entry the first is not remembered: rare with so many entries.
  constexpr uint64_t kNearlyAll = kItems - 3;
  put_all(*writer, "read");
  CHECK(get_all(*first, "read") == 0);
  CHECK(get_all(*second, "read") >= kNearlyAll);
  const uint64_t reads = second->counters().reads;
  CHECK(get_all(*second, "read") >= kNearlyAll);
  CHECK(second->counters().reads - reads <= kItems + 9);
  // In place, which moves nothing.
  put_all(*writer, "over");
  CHECK(get_all(*first, "over") >= kNearlyAll);
  // Elsewhere: the first one to look has to look again, and the other one need not.
  put_all(*writer, std::string(1000, 'm'));
  CHECK(get_all(*first, std::string(1000, 'm')) <= kItems - kNearlyAll);
  CHECK(get_all(*second, std::string(1000, 'm')) >= kNearlyAll);
  CHECK(second->counters().stale_locations <= kItems - kNearlyAll);
  // By a client that shares the cache: nobody has to look.
  put_all(*first, std::string(3000, 'w'));
  CHECK(get_all(*second, std::string(3000, 'w')) >= kNearlyAll);
  // By many at once, too.
  const std::vector<std::string_view> keys = {"key1", "key2", "key3"};
  std::vector<GetResult> results(keys.size());
  const uint64_t hits = second->counters().location_hits;
  KVD_REQUIRE_OK(second->MultiGet(keys, results));
  for (const GetResult& result : results) CHECK(result.value == std::string(3000, 'w'));
  CHECK(second->counters().location_hits - hits >= 1);
}

TEST_CASE(
    "Shared locations: a key that one client deletes is gone for the others, and costs once") {
  const KvdUnderTest kvd({"--memory=64m"});
  const ClientOptions options = Sharing(MakeLocationCache(1024).value());
  const auto writer = kvd.Connect();
  const auto first = kvd.Connect(options);
  const auto second = kvd.Connect(options);
  KVD_REQUIRE_OK(writer->Put("k", "v"));
  KVD_REQUIRE_OK(first->Get("k"));
  KVD_REQUIRE_OK(writer->Delete("k"));
  KVD_REQUIRE_CODE(second->Get("k"), kNotFound);
  CHECK(second->counters().stale_locations > 0);
  const uint64_t stale = first->counters().stale_locations;
  KVD_REQUIRE_CODE(first->Get("k"), kNotFound);
  CHECK(first->counters().stale_locations == stale);
  KVD_REQUIRE_OK(writer->Put("k", "w"));
  CHECK(first->Get("k").value() == "w");
  CHECK(second->Get("k").value() == "w");
  KVD_REQUIRE_OK(first->Delete("k"));
  KVD_REQUIRE_CODE(second->Get("k"), kNotFound);
}

// Few entries, so that every thread replaces what the others remember, and a table that grows and
// shrinks meanwhile.
TEST_CASE("Shared locations: threads with a client each get no wrong value") {
  const uint64_t entries = GENERATE(16u, 4096u);
  CAPTURE(entries);
  constexpr size_t kReaders = 2;
  const KvdUnderTest kvd({"--memory=64m"});
  // In the guest every write takes a hundred times as long.
  const size_t rounds = kvd.over_rdma() ? kBreath : 4 * kBreath;
  const int writes_a_round = kvd.over_rdma() ? 10 : 50;
  ClientOptions options = Sharing(MakeLocationCache(entries).value());
  options.deadline = std::chrono::seconds(60);
  Scores scores;
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < kReaders + 1; ++i) clients.push_back(kvd.Connect(options));
  std::array<absl::Status, kReaders> judged;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kReaders; ++i) {
    threads.emplace_back([&, i] { judged[i] = ReadUntil(stop, *clients[i], scores, i + 1); });
  }
  absl::Status written;
  Random random(7);
  for (size_t round = 0; round < rounds && written.ok(); ++round) {
    for (int write = 0; write < writes_a_round && written.ok(); ++write) {
      const size_t key = random.Uniform(kKeys);
      written = WriteNext(*clients[kReaders], key, scores[key]);
    }
    if (written.ok()) written = Breathe(*clients[kReaders], round);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(written == absl::OkStatus());
  uint64_t hits = 0;
  for (size_t i = 0; i < kReaders; ++i) {
    CHECK(judged[i] == absl::OkStatus());
    hits += clients[i]->counters().location_hits;
  }
  CHECK(hits > 0);
}

}  // namespace kvd::test
