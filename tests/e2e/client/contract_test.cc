// What every operation promises, against a real kvd over shared memory.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/kv_client.h"
#include "tests/e2e/client/kvd_under_test.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Fixture {
  Fixture() : kvd({"--memory=64m", "--max_value=8m"}) { client = kvd.Connect(); }

  std::string Value(std::string_view key) { return client->Get(key).value(); }
  uint64_t Version(std::string_view key) {
    std::string value;
    ItemInfo info;
    KVD_REQUIRE_OK(client->Get(key, value, &info));
    return info.version;
  }

  KvdUnderTest kvd;
  std::unique_ptr<Client> client;
};

WriteOptions With(Condition condition) {
  WriteOptions options;
  options.condition = condition;
  return options;
}

uint64_t StatisticOf(Client& client, std::string_view name) {
  const auto statistics = client.Stats().value();
  for (const auto& [each, value] : statistics) {
    if (each == name) return std::stoull(value);
  }
  FAIL("no statistic " << name);
  return 0;
}

}  // namespace

TEST_CASE_METHOD(Fixture, "Client: kvd learns what clients read by themselves, to the last GET") {
  KVD_REQUIRE_OK(client->Put("k", "v"));
  REQUIRE(StatisticOf(*client, "reported_gets") == 0);
  auto reader = kvd.Connect();
  std::string value;
  for (int i = 0; i < 300; ++i) KVD_REQUIRE_OK(reader->Get("k", value));
  for (int i = 0; i < 70; ++i) REQUIRE(absl::IsNotFound(reader->Get("none", value)));
  const ClientCounters counted = reader->counters();
  reader.reset();  // which tells
  CHECK(StatisticOf(*client, "reported_gets") == 370);
  CHECK(StatisticOf(*client, "reported_hits") == 300);
  CHECK(StatisticOf(*client, "reported_misses") == 70);
  CHECK(StatisticOf(*client, "reported_reads") == counted.reads);
  CHECK(StatisticOf(*client, "reported_read_bytes") == counted.read_bytes);
  CHECK(StatisticOf(*client, "reported_torn_reads") == counted.torn_reads);
  CHECK(StatisticOf(*client, "reported_fallbacks") == counted.gets_by_request);
  CHECK(StatisticOf(*client, "reported_read_errors") == 0);
}

TEST_CASE_METHOD(Fixture, "Client: one that reads all the time tells of it while it does") {
  KVD_REQUIRE_OK(client->Put("k", "v"));
  const auto reader = kvd.Connect();
  std::string value;
  const auto deadline = std::chrono::steady_clock::now() + seconds(60);
  uint64_t told = 0;
  while (told == 0 && std::chrono::steady_clock::now() < deadline) {
    for (int i = 0; i < 1000; ++i) KVD_REQUIRE_OK(reader->Get("k", value));
    told = StatisticOf(*client, "reported_gets");
  }
  CHECK(told > 0);
  CHECK(told <= reader->counters().gets);
  // The session has its own numbers.
  const auto sessions = client->Sessions();
  if (sessions.ok()) {  // over RDMA it takes a key of the role admin
    uint64_t in_sessions = 0;
    for (const Client::Facts& facts : *sessions) {
      for (const auto& [name, of] : facts)
        in_sessions += name == "reported_gets" ? std::stoull(of) : 0;
    }
    CHECK(in_sessions >= told);
  }
}

TEST_CASE_METHOD(Fixture, "Client: a time to live counts from the server's clock as it is now") {
  WriteOptions options;
  options.ttl = seconds(100);
  // A client that took long to connect knows the clock so badly that it asks again soon. (Rarely it
  // does not take long, when the thread has no processor first.) How many writes that takes depends
  // on how quick they are, so the clock decides.
  bool asked = false;
  for (int attempt = 0; attempt < 20 && !asked; ++attempt) {
    kvd.process().Stop();
    std::unique_ptr<Client> slow;
    std::atomic<bool> connecting = false;
    std::thread connects([&] {
      connecting = true;
      slow = kvd.Connect();
    });
    while (!connecting) std::this_thread::yield();
    const auto enough = std::chrono::steady_clock::now() + milliseconds(20);
    while (std::chrono::steady_clock::now() < enough) std::this_thread::yield();
    kvd.process().Continue();
    connects.join();
    const uint64_t before = slow->counters().requests;
    const auto soon = std::chrono::steady_clock::now() + milliseconds(100);
    bool last = false;
    for (uint64_t puts = 1; !last && !asked; ++puts) {
      last = std::chrono::steady_clock::now() > soon;
      KVD_REQUIRE_OK(slow->Put("ttl", "1", options));
      asked = slow->counters().requests - before > puts;
    }
  }
  CHECK(asked);
}

TEST_CASE_METHOD(Fixture, "Client: put if absent, if present, if version") {
  KVD_REQUIRE_CODE(client->Put("k", "1", With(Condition::IfPresent())), kNotFound);
  KVD_REQUIRE_CODE(client->Put("k", "1", With(Condition::IfVersion(7))), kNotFound);
  KVD_REQUIRE_CODE(client->Get("k"), kNotFound);
  KVD_REQUIRE_OK(client->Put("k", "1", With(Condition::IfAbsent())));
  KVD_REQUIRE_CODE(client->Put("k", "2", With(Condition::IfAbsent())), kAborted);
  CHECK(Value("k") == "1");
  KVD_REQUIRE_OK(client->Put("k", "2", With(Condition::IfPresent())));
  const uint64_t version = Version("k");
  const auto swapped = client->Put("k", "3", With(Condition::IfVersion(version)));
  KVD_REQUIRE_OK(swapped);
  CHECK(swapped->version > version);
  CHECK(swapped->version == Version("k"));
  const auto lost = client->Put("k", "4", With(Condition::IfVersion(version)));
  KVD_REQUIRE_CODE(lost, kAborted);
  CHECK_THAT(MessageOf(lost), Contains(std::to_string(swapped->version)));
  CHECK(Value("k") == "3");
  // Large values, which the server pulls.
  const std::string large(300'000, 'x');
  KVD_REQUIRE_CODE(client->Put("k", large, With(Condition::IfVersion(version))), kAborted);
  KVD_REQUIRE_OK(client->Put("k", large, With(Condition::IfVersion(swapped->version))));
  CHECK(Value("k") == large);
  KVD_REQUIRE_CODE(client->Put("k", "x", With(Condition::IfVersion(0))), kInvalidArgument);
}

TEST_CASE_METHOD(Fixture,
                 "Client: a version never fits twice, also across delete and re-insertion") {
  KVD_REQUIRE_OK(client->Put("k", "a"));
  const uint64_t version = Version("k");
  KVD_REQUIRE_OK(client->Delete("k"));
  KVD_REQUIRE_OK(client->Put("k", "a"));
  KVD_REQUIRE_CODE(client->Put("k", "b", With(Condition::IfVersion(version))), kAborted);
  KVD_REQUIRE_CODE(client->Delete("k", With(Condition::IfVersion(version))), kAborted);
  KVD_REQUIRE_OK(client->Delete("k", With(Condition::IfVersion(Version("k")))));
  KVD_REQUIRE_CODE(client->Delete("k", With(Condition::IfVersion(version))), kNotFound);
  KVD_REQUIRE_CODE(client->Delete("k"), kNotFound);
  KVD_REQUIRE_CODE(client->Delete("k", With(Condition::IfAbsent())), kInvalidArgument);
}

TEST_CASE_METHOD(Fixture, "Client: increment counts, and refuses what it cannot count") {
  CHECK(client->Increment("n", 5)->value == 5);
  CHECK(client->Increment("n", -7)->value == -2);
  CHECK(Value("n") == "-2");
  KVD_REQUIRE_CODE(client->Increment("m", 1, With(Condition::IfPresent())), kNotFound);
  KVD_REQUIRE_OK(client->Put("n", std::to_string(std::numeric_limits<int64_t>::max())));
  KVD_REQUIRE_CODE(client->Increment("n", 1), kOutOfRange);
  CHECK(Value("n") == std::to_string(std::numeric_limits<int64_t>::max()));
  CHECK(client->Increment("n", std::numeric_limits<int64_t>::min())->value == -1);
  KVD_REQUIRE_OK(client->Put("n", std::to_string(std::numeric_limits<int64_t>::min())));
  KVD_REQUIRE_CODE(client->Increment("n", -1), kOutOfRange);
  for (const char* no_number :
       {"", "x", "1 ", " 1", "01", "+1", "1.0", "9223372036854775808", "-"}) {
    CAPTURE(no_number);
    KVD_REQUIRE_OK(client->Put("n", no_number));
    KVD_REQUIRE_CODE(client->Increment("n", 1), kInvalidArgument);
    CHECK(Value("n") == no_number);
  }
}

TEST_CASE_METHOD(Fixture,
                 "Client: append and prepend, small and pulled, up to the limit of a value") {
  KVD_REQUIRE_OK(client->Append("s", "b"));
  KVD_REQUIRE_OK(client->Append("s", "c"));
  KVD_REQUIRE_OK(client->Prepend("s", "a"));
  CHECK(Value("s") == "abc");
  const std::string large(500'000, 'x');
  KVD_REQUIRE_OK(client->Append("s", large));
  KVD_REQUIRE_OK(client->Prepend("s", large));
  CHECK(Value("s") == large + "abc" + large);
  KVD_REQUIRE_CODE(client->Append("t", "x", With(Condition::IfPresent())), kNotFound);
  KVD_REQUIRE_CODE(client->Append("t", "x", With(Condition::IfAbsent())), kInvalidArgument);
  const std::string most((8u << 20) - 1, 'y');
  KVD_REQUIRE_OK(client->Put("s", most));
  KVD_REQUIRE_OK(client->Append("s", "z"));
  const absl::Status too_long = client->Append("s", "z").status();
  KVD_REQUIRE_CODE(too_long, kOutOfRange);
  CHECK_THAT(std::string(too_long.message()),
             Contains("with 1 byte more the value would be longer"));
  KVD_REQUIRE_CODE(client->Prepend("s", "z"), kOutOfRange);
  CHECK(Value("s") == most + "z");
}

TEST_CASE_METHOD(Fixture, "Client: lengths at their limits") {
  const std::string longest_key(4096, 'k');
  KVD_REQUIRE_OK(client->Put(longest_key, ""));
  CHECK(Value(longest_key).empty());
  KVD_REQUIRE_CODE(client->Put(longest_key + "k", "v"), kInvalidArgument);
  KVD_REQUIRE_CODE(client->Put("", "v"), kInvalidArgument);
  KVD_REQUIRE_CODE(client->Get(""), kInvalidArgument);
  for (const size_t length : {(8u << 20) - 1, 8u << 20}) {
    const std::string value(length, 'v');
    KVD_REQUIRE_OK(client->Put("k", value));
    CHECK(Value("k") == value);
  }
  KVD_REQUIRE_CODE(client->Put("k", std::string((8u << 20) + 1, 'v')), kOutOfRange);
}

TEST_CASE_METHOD(Fixture, "Client: an item expires for every reader, and may be touched") {
  WriteOptions soon;
  soon.ttl = milliseconds(60);
  soon.user_flags = 0xcafe;
  KVD_REQUIRE_OK(client->Put("k", "v", soon));
  std::string value;
  ItemInfo info;
  KVD_REQUIRE_OK(client->Get("k", value, &info));
  CHECK(info.user_flags == 0xcafe);
  CHECK(info.expiry_unix_us > client->ServerUnixUs());
  // Whatever remembers where it lies must see it go as well.
  ClientOptions remembering;
  remembering.location_cache_entries = 1024;
  const auto other = kvd.Connect(remembering);
  bool seen = other->Get("k").ok();
  while (client->Get("k").ok()) continue;
  CHECK(client->ServerUnixUs() >= info.expiry_unix_us);
  while (other->Get("k").ok()) seen = true;
  CHECK(seen);
  CHECK(other->counters().expired > 0);
  KVD_REQUIRE_CODE(client->Touch("k", {}), kNotFound);
  KVD_REQUIRE_OK(client->Put("k", "w", With(Condition::IfAbsent())));

  soon.user_flags = 0;
  soon.ttl = seconds(1000);
  const uint64_t version = Version("k");
  KVD_REQUIRE_OK(client->Touch("k", soon));
  KVD_REQUIRE_OK(client->Get("k", value, &info));
  CHECK(value == "w");
  CHECK(info.version > version);
  CHECK(info.expiry_unix_us > client->ServerUnixUs() + 900'000'000);
  KVD_REQUIRE_OK(client->GetAndTouch("k", value, &info, {}));
  CHECK(value == "w");
  CHECK(info.expiry_unix_us == 0);
  const std::string large(200'000, 'l');
  KVD_REQUIRE_OK(client->Put("large", large));
  KVD_REQUIRE_OK(client->GetAndTouch("large", value, &info, soon));
  CHECK(value == large);
  CHECK(info.expiry_unix_us != 0);
  KVD_REQUIRE_CODE(client->GetAndTouch("absent", value, &info, soon), kNotFound);
  WriteOptions past;
  past.expiry_unix_us = 1;
  KVD_REQUIRE_CODE(client->GetAndTouch("large", value, &info, past), kNotFound);
  KVD_REQUIRE_CODE(client->Get("large"), kNotFound);
}

TEST_CASE_METHOD(Fixture, "Client: remembered places count alike for every kind of GET") {
  ClientOptions options;
  options.location_cache_entries = 1024;
  const auto remembering = kvd.Connect(options);
  KVD_REQUIRE_OK(client->Put("small", "s"));
  KVD_REQUIRE_OK(client->Put("large", std::string(100'000, 'l')));
  const auto hits = [&] { return remembering->counters().location_hits; };
  const std::vector<std::string_view> keys = {"small", "large", "absent"};
  std::vector<GetResult> results(keys.size());
  KVD_REQUIRE_OK(remembering->MultiGet(keys, results));
  CHECK(hits() == 0);
  KVD_REQUIRE_OK(remembering->MultiGet(keys, results));
  CHECK(results[1].value.size() == 100'000);
  CHECK(hits() == 2);
  const auto start = [&] {
    for (const std::string_view key : keys) remembering->StartGet(key, Async{});
    Completion completions[3];
    while (remembering->outstanding() != 0) remembering->Wait(completions, seconds(60));
  };
  start();
  CHECK(hits() == 4);
  // Written anew by somebody else, and longer: what was remembered leads nowhere any more.
  KVD_REQUIRE_OK(client->Put("small", std::string(5000, 's')));
  KVD_REQUIRE_OK(client->Put("large", std::string(200'000, 'l')));
  const uint64_t stale = remembering->counters().stale_locations;
  start();
  CHECK(hits() == 4);
  CHECK(remembering->counters().stale_locations == stale + 2);
  start();
  CHECK(hits() == 6);
  CHECK(remembering->Get("small").value().size() == 5000);
  CHECK(hits() == 7);
}

TEST_CASE_METHOD(Fixture,
                 "Client: an expiry that has passed, and options that contradict each other") {
  WriteOptions past;
  past.expiry_unix_us = 1;
  KVD_REQUIRE_OK(client->Put("k", "v"));
  KVD_REQUIRE_OK(client->Put("k", "w", past));
  KVD_REQUIRE_CODE(client->Get("k"), kNotFound);
  WriteOptions both;
  both.ttl = seconds(1);
  both.expiry_unix_us = 1;
  KVD_REQUIRE_CODE(client->Put("k", "v", both), kInvalidArgument);
  WriteOptions negative;
  negative.ttl = microseconds(-1);
  KVD_REQUIRE_CODE(client->Put("k", "v", negative), kInvalidArgument);
  WriteOptions ttl;
  ttl.ttl = seconds(1);
  KVD_REQUIRE_CODE(client->Delete("k", ttl), kInvalidArgument);
  WriteOptions flags;
  flags.user_flags = 1;
  KVD_REQUIRE_CODE(client->Touch("k", flags), kInvalidArgument);
}

TEST_CASE_METHOD(Fixture, "Client: increment and append keep an item's expiry and user flags") {
  WriteOptions options;
  options.ttl = seconds(1000);
  options.user_flags = 7;
  KVD_REQUIRE_OK(client->Put("n", "1", options));
  KVD_REQUIRE_OK(client->Increment("n", 1));
  KVD_REQUIRE_OK(client->Append("n", "0"));
  std::string value;
  ItemInfo info;
  KVD_REQUIRE_OK(client->Get("n", value, &info));
  CHECK(value == "20");
  CHECK(info.user_flags == 7);
  CHECK(info.expiry_unix_us > client->ServerUnixUs());
  KVD_REQUIRE_OK(client->Put("n", "1"));
  KVD_REQUIRE_OK(client->Get("n", value, &info));
  CHECK(info.user_flags == 0);
  CHECK(info.expiry_unix_us == 0);
}

TEST_CASE_METHOD(Fixture, "Client: batches give each key its status, duplicates included") {
  ClientOptions whole;
  whole.read_whole_buckets = true;
  const auto by_machine = kvd.Connect(whole);
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) names.push_back("key" + std::to_string(i % 250));
  std::vector<PutRequest> puts;
  for (int i = 0; i < 250; i += 2)
    puts.push_back({names[static_cast<size_t>(i)], names[static_cast<size_t>(i)]});
  puts.push_back({"", "no key"});
  const std::string large(100'000, 'x');
  puts.push_back({"large", large});
  const auto put = client->MultiPut(puts);
  REQUIRE(put.size() == puts.size());
  for (size_t i = 0; i < put.size(); ++i) {
    CHECK(put[i].status().code() ==
          (i == 125 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kOk));
  }
  std::vector<std::string_view> keys(names.begin(), names.end());
  keys.push_back("large");
  std::vector<GetResult> results(keys.size());
  for (Client* reader : {client.get(), by_machine.get()}) {
    KVD_REQUIRE_OK(reader->MultiGet(keys, results));
    for (size_t i = 0; i < names.size(); ++i) {
      CAPTURE(i);
      if ((i % 250) % 2 == 0) {
        CHECK(results[i].status == absl::OkStatus());
        CHECK(results[i].value == names[i]);
        CHECK(results[i].info.version != 0);
      } else {
        CHECK(absl::IsNotFound(results[i].status));
      }
    }
    CHECK(results.back().value == large);
  }
  keys[3] = "";
  KVD_REQUIRE_OK(client->MultiGet(keys, results));
  CHECK(absl::IsInvalidArgument(results[3].status));
  CHECK(results[0].status == absl::OkStatus());
  KVD_REQUIRE_CODE(client->MultiGet(keys, std::span(results).first(1)), kInvalidArgument);
  KVD_REQUIRE_OK(client->MultiGet({}, {}));

  const std::vector<std::string_view> doomed = {"key0", "key1", "key0"};
  const auto deleted = client->MultiDelete(doomed);
  REQUIRE(deleted.size() == 3);
  CHECK(absl::IsNotFound(deleted[1]));
  CHECK(deleted[0].ok() != deleted[2].ok());
}

TEST_CASE_METHOD(Fixture, "Client: a scan by prefix, in parts, and a cursor of another run") {
  for (int i = 0; i < 3000; ++i) {
    const std::string prefix = i % 3 == 0 ? "a:" : "b:";
    KVD_REQUIRE_OK(client->Put(prefix + std::to_string(i), "v"));
  }
  std::vector<std::string> met;
  ScanOptions options;
  options.prefix = "a:";
  options.count = 100;
  int parts = 0;
  do {
    const auto cursor = client->Scan(
        [&met](std::string_view key, std::string_view, const ItemInfo&) {
          met.emplace_back(key);
          return true;
        },
        options);
    KVD_REQUIRE_OK(cursor);
    options.cursor = *cursor;
    ++parts;
  } while (!options.cursor.empty());
  CHECK(parts >= 5);
  CHECK(met.size() == 1000);
  for (const std::string& key : met) REQUIRE(key.starts_with("a:"));
  options.cursor = "0000000000000001-0-0";
  const auto visit_none = [](std::string_view, std::string_view, const ItemInfo&) { return true; };
  KVD_REQUIRE_CODE(client->Scan(visit_none, options), kFailedPrecondition);
  options.cursor = "nonsense";
  KVD_REQUIRE_CODE(client->Scan(visit_none, options), kInvalidArgument);
}

TEST_CASE(
    "Client: an evicting kvd learns of a large value's read at once, and of the rest when the "
    "client is closed") {
  KvdUnderTest kvd({"--memory=64m", "--max_value=8m", "--evict=lru"});
  const auto watcher = kvd.Connect();
  const auto told = [&] {
    const auto stats = watcher->Stats();
    KVD_REQUIRE_OK(stats);
    for (const auto& [name, text] : *stats) {
      if (name == "requests_hits") return std::stoull(text);
    }
    return 0ull;
  };
  KVD_REQUIRE_OK(watcher->Put("large", std::string(3 << 20, 'l')));
  KVD_REQUIRE_OK(watcher->Put("small", "s"));
  auto client = kvd.Connect();
  KVD_REQUIRE_OK(client->Get("large"));
  // It is not waited for: what is asked next comes after it.
  KVD_REQUIRE_OK(client->Put("small", "s"));
  CHECK(told() == 1);
  for (int i = 0; i < 20; ++i) KVD_REQUIRE_OK(client->Get("small"));
  CHECK(told() == 1);
  client.reset();
  CHECK(told() == 2);
  // Nothing to tell, nothing told.
  client = kvd.Connect();
  KVD_REQUIRE_OK(client->Put("small", "s"));
  client.reset();
  CHECK(told() == 2);
}

TEST_CASE("Client: what is read one-sidedly is not evicted before what nobody reads") {
  KvdUnderTest kvd({"--memory=64m", "--evict=lru"});
  const auto client = kvd.Connect();
  const std::string value(4000, 'v');
  const bool started = GENERATE(false, true);  // whichever way they are read
  // Far more than fits, and between any two writes some of the first hundred are read.
  int i = 0;
  for (; i < 25'000; ++i) {
    KVD_REQUIRE_OK(client->Put("key" + std::to_string(i), value));
    for (int j = 0; j < 8; ++j) {
      const std::string key = "key" + std::to_string((i * 8 + j) % 100);
      if (started) {
        client->StartGet(key, Async{0, [](Completion&) {}});
      } else {
        static_cast<void>(client->Get(key));
      }
    }
    while (client->outstanding() != 0) client->Wait({}, seconds(60));
  }
  int hot = 0;
  for (int j = 0; j < 100; ++j) hot += client->Get("key" + std::to_string(j)).ok() ? 1 : 0;
  int cold = 0;
  for (int j = 1000; j < 1100; ++j) cold += client->Get("key" + std::to_string(j)).ok() ? 1 : 0;
  CHECK(hot >= 95);
  CHECK(cold <= 5);
  uint64_t evicted = 0;
  const auto stats = client->Stats();
  KVD_REQUIRE_OK(stats);
  for (const auto& [name, text] : *stats) {
    if (name == "evicted_items") evicted = std::stoull(text);
  }
  CHECK(evicted > 7'000);
}

// This is compiled with -Wmissing-field-initializers as an error.
TEST_CASE_METHOD(Fixture, "Client: what takes options takes those that are named, and no others") {
  ClientOptions options{.deadline = seconds(60)};
  const auto other = kvd.Connect(options);
  KVD_REQUIRE_OK(other->Put("k", "v", {.ttl = seconds(1000)}));
  CHECK(other->Get("k", {.deadline = seconds(60)}).value() == "v");
  KVD_REQUIRE_CODE(other->Put("k", "v", {.condition = Condition::IfAbsent()}), kAborted);
  int visited = 0;
  const auto count = [&visited](auto, auto, auto&) { return ++visited > 0; };
  KVD_REQUIRE_OK(other->Scan(count, {.prefix = "k"}));
  CHECK(visited == 1);
  other->StartGet("k", {.tag = 7});
  Completion completion{.tag = 1};
  CHECK(other->Wait(std::span(&completion, 1), seconds(60)) == 1);
  CHECK(completion.tag == 7);
  CHECK(PutRequest{.key = "k"}.value.empty());
  CHECK(GetResult{.status = absl::OkStatus()}.value.empty());
}

TEST_CASE_METHOD(Fixture, "Client: an operation whose deadline had passed is not begun") {
  KVD_REQUIRE_OK(client->Put("k", "1"));
  const Buffer buffer = client->AllocateBuffer(100'000).value();
  const uint64_t requests = client->counters().requests;
  OperationOptions over;
  over.deadline = std::chrono::nanoseconds(-1);
  WriteOptions write_over;
  write_over.deadline = seconds(-3600);
  std::string value;
  KVD_REQUIRE_CODE(client->Get("k", value, nullptr, over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->GetInto("k", buffer.bytes(), over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->GetInto("k", buffer, over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Exists("k", over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Ping(over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Stats(over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Flush("", over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Put("k", "2", write_over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->PutFrom("k", buffer, buffer.size(), write_over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Delete("k", write_over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Increment("k", 1, write_over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Append("k", "2", write_over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Touch("k", write_over), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->GetAndTouch("k", value, nullptr, write_over), kDeadlineExceeded);
  const std::vector<std::string_view> keys = {"k", "k"};
  std::vector<GetResult> results(2);
  KVD_REQUIRE_OK(client->MultiGet(keys, results, over));
  for (const GetResult& result : results) KVD_REQUIRE_CODE(result.status, kDeadlineExceeded);
  for (const auto& put : client->MultiPut(std::vector<PutRequest>{{"k", "2"}}, write_over)) {
    KVD_REQUIRE_CODE(put, kDeadlineExceeded);
  }
  for (const auto& status : client->MultiDelete(keys, write_over)) {
    KVD_REQUIRE_CODE(status, kDeadlineExceeded);
  }
  ScanOptions scan;
  scan.deadline = seconds(-1);
  KVD_REQUIRE_CODE(client->Scan([](auto, auto, auto&) { return true; }, scan), kDeadlineExceeded);
  int came_back = 0;
  const Async counted{0, [&came_back](Completion& completion) {
                        CHECK(absl::IsDeadlineExceeded(completion.status));
                        ++came_back;
                      }};
  client->StartGet("k", counted, over);
  client->StartPut("k", "2", counted, write_over);
  client->StartPutFrom("k", buffer, 1, counted, write_over);
  while (client->outstanding() != 0) client->Wait({}, seconds(60));
  CHECK(came_back == 3);
  CHECK(client->counters().requests == requests);
  CHECK(Value("k") == "1");
}

TEST_CASE_METHOD(Fixture, "Client: a write whose time is over before it is sent is not sent") {
  KVD_REQUIRE_OK(client->Put("k", "1"));
  const Buffer buffer = client->AllocateBuffer(100'000).value();
  const uint64_t requests = client->counters().requests;
  WriteOptions options;
  options.deadline = std::chrono::nanoseconds(1);
  std::vector<absl::Status> statuses;
  statuses.push_back(client->Put("k", "2", options).status());
  statuses.push_back(client->Put("k", std::string(1 << 20, 'x'), options).status());
  statuses.push_back(client->PutFrom("k", buffer, buffer.size(), options).status());
  statuses.push_back(client->Delete("k", options));
  statuses.push_back(client->MultiPut(std::vector<PutRequest>{{"k", "2"}}, options)[0].status());
  const Async noted{0,
                    [&statuses](Completion& completion) { statuses.push_back(completion.status); }};
  client->StartPut("k", "2", noted, options);
  client->StartPutFrom("k", buffer, buffer.size(), noted, options);
  while (client->outstanding() != 0) client->Wait({}, seconds(60));
  CHECK(statuses.size() == 7);
  for (const absl::Status& status : statuses) {
    KVD_REQUIRE_CODE(status, kDeadlineExceeded);
    CHECK_THAT(std::string(status.message()), Contains("not sent"));
  }
  CHECK(client->counters().requests == requests);
  CHECK(Value("k") == "1");
  CHECK_FALSE(buffer.busy());
}

// Each poller has half of the memory, and the values are a quarter of it.
TEST_CASE("Client: a write that asks for its item is not the one for which that item is evicted") {
  KvdUnderTest kvd({"--memory=16m", "--max_value=4m", "--pollers=2", "--evict=lru"});
  const auto client = kvd.Connect();
  std::map<std::string, std::string> held;
  for (int i = 0; i < 60; ++i) {
    const std::string key = "k" + std::to_string(i % 3);
    const std::string value(4 << 20, static_cast<char>('a' + i % 26));
    std::string before;
    const bool there = client->Get(key, before).ok();
    if (there) CHECK(before == held[key]);
    const absl::Status put =
        client->Put(key, value, there ? With(Condition::IfPresent()) : WriteOptions()).status();
    if (put.ok()) {
      held[key] = value;
      continue;
    }
    // No room: then nothing has changed, above all not the item.
    KVD_REQUIRE_CODE(put, kResourceExhausted);
    if (there) CHECK(client->Get(key).value() == before);
  }
}

}  // namespace kvd::test
