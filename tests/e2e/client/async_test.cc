// Operations that are started: every one comes back exactly once, by callback or by Poll, whatever
// happens in between.
#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "common/base/random.h"
#include "tests/e2e/client/kvd_under_test.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Fixture {
  Fixture() : kvd({"--memory=64m", "--max_value=8m"}) {
    ClientOptions options;
    options.deadline = seconds(60);
    client = kvd.Connect(options);
  }

  // Waits for all that is under way.
  std::map<uint64_t, Completion> Drain() {
    std::map<uint64_t, Completion> all;
    std::vector<Completion> some(16);
    while (client->outstanding() != 0) {
      const size_t count = client->Wait(some, seconds(60));
      REQUIRE(count != 0);
      for (size_t i = 0; i < count; ++i) {
        const uint64_t tag = some[i].tag;
        REQUIRE(all.emplace(tag, std::move(some[i])).second);
      }
    }
    return all;
  }

  KvdUnderTest kvd;
  std::unique_ptr<Client> client;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "Client: hundreds of operations under way come back, each with its tag") {
  const std::string large(100'000, 'x');
  for (uint64_t i = 0; i < 500; ++i) {
    client->StartPut("key" + std::to_string(i), i % 50 == 0 ? large : std::to_string(i),
                     Async{i, {}});
  }
  CHECK(client->outstanding() == 500);
  auto puts = Drain();
  REQUIRE(puts.size() == 500);
  for (const auto& [tag, completion] : puts) {
    REQUIRE(completion.status == absl::OkStatus());
    REQUIRE(completion.info.version != 0);
  }
  for (uint64_t i = 0; i < 600; ++i) client->StartGet("key" + std::to_string(i), Async{i, {}});
  auto gets = Drain();
  REQUIRE(gets.size() == 600);
  for (const auto& [tag, completion] : gets) {
    CAPTURE(tag);
    if (tag >= 500) {
      CHECK(absl::IsNotFound(completion.status));
      continue;
    }
    CHECK(completion.status == absl::OkStatus());
    CHECK(completion.value == (tag % 50 == 0 ? large : std::to_string(tag)));
    CHECK(completion.info.version == puts.at(tag).info.version);
  }
}

TEST_CASE_METHOD(Fixture,
                 "Client: callbacks are called by Poll and Wait only, and may start more") {
  int called = 0;
  std::function<void(Completion&)> again = [&](Completion& completion) {
    CHECK(completion.status == absl::OkStatus());
    if (++called < 100) client->StartIncrement("n", 1, Async{0, again});
  };
  client->StartIncrement("n", 1, Async{0, again});
  client->StartGet("", Async{0, [&](Completion& completion) {
                               CHECK(absl::IsInvalidArgument(completion.status));
                             }});
  CHECK(called == 0);
  while (client->outstanding() != 0) client->Wait({}, seconds(60));
  CHECK(called == 100);
  CHECK(client->Get("n").value() == "100");
  CHECK(client->Wait({}, seconds(60)) == 0);  // nothing is under way
}

TEST_CASE_METHOD(
    Fixture, "Client: a completion that finds no room holds up neither callbacks nor Wait's time") {
  client->StartGet("", Async{1, {}});  // refused, so it has come back already
  int called = 0;
  client->StartIncrement("n", 1, Async{2, [&](Completion& completion) {
                                         CHECK(completion.status == absl::OkStatus());
                                         ++called;
                                       }});
  CHECK(client->Wait({}, seconds(60)) == 1);
  CHECK(called == 1);
  CHECK(client->outstanding() == 1);
  const auto before = std::chrono::steady_clock::now();
  CHECK(client->Wait({}, milliseconds(50)) == 0);
  CHECK(std::chrono::steady_clock::now() - before >= milliseconds(50));
  Completion completion;
  CHECK(client->Wait(std::span(&completion, 1), seconds(60)) == 1);
  CHECK(completion.tag == 1);
  CHECK(client->outstanding() == 0);
}

TEST_CASE_METHOD(
    Fixture, "Client: every kind of operation can be started, and blocking ones come in between") {
  client->StartPut("a", "1", Async{1, {}});
  client->StartAppend("a", "2", Async{2, {}});
  client->StartPrepend("a", "0", Async{3, {}});
  KVD_REQUIRE_OK(client->Ping());
  client->StartIncrement("n", 1, Async{4, {}});
  WriteOptions ttl;
  ttl.ttl = seconds(100);
  client->StartTouch("a", Async{5, {}}, ttl);
  auto done = Drain();
  REQUIRE(done.size() == 5);
  for (const auto& [tag, completion] : done) CHECK(completion.status == absl::OkStatus());
  CHECK(done.at(4).number == 1);
  CHECK(client->Get("a").value() == "012");
  client->StartDelete("a", Async{6, {}});
  char buffer[4];
  KVD_REQUIRE_OK(client->Put("b", "1234"));
  client->StartGetInto("b", buffer, Async{7, {}});
  KVD_REQUIRE_OK(client->Put("c", "12345"));
  client->StartGetInto("c", buffer, Async{8, {}});
  done = Drain();
  CHECK(done.at(6).status == absl::OkStatus());
  CHECK(done.at(7).status == absl::OkStatus());
  CHECK(done.at(7).length == 4);
  CHECK(absl::IsOutOfRange(done.at(8).status));
}

TEST_CASE_METHOD(
    Fixture, "Client: writes of one key take effect in the order of their start, however long") {
  Random random(Seed());
  const std::string large(4'000'000, 'x');
  for (int round = 0; round < 20; ++round) {
    std::string expected;
    for (uint64_t tag = 0; tag < 12; ++tag) {
      const std::string value =
          large.substr(0, random.OneIn(2) ? 10 : 1 + random.Uniform(large.size())) +
          std::to_string(tag);
      if (tag > 0 && random.OneIn(4)) {
        client->StartDelete("key", Async{tag, {}});
        expected.clear();
      } else {
        client->StartPut("key", value, Async{tag, {}});
        expected = value;
      }
    }
    client->StartAppend("key", "end", Async{12, {}});
    uint64_t version = 0;
    for (const auto& [tag, completion] : Drain()) {
      CAPTURE(round, tag);
      if (absl::IsNotFound(completion.status)) continue;  // of two DELETEs the second
      REQUIRE(completion.status == absl::OkStatus());
      REQUIRE(completion.info.version > version);
      version = completion.info.version;
    }
    REQUIRE(client->Get("key").value() == expected + "end");
  }
}

TEST_CASE_METHOD(
    Fixture,
    "Client: an event loop waits on one descriptor, over broken sessions and deadlines as well") {
  const auto fd = client->EventFd();
  KVD_REQUIRE_OK(fd);
  uint64_t ended = 0;
  uint64_t slept = 0;
  for (uint64_t round = 0; round < 300; ++round) {
    if (round % 40 == 39) kvd.BreakSessions();
    client->StartIncrement("n", 1, Async{round, {}});
    const uint64_t wanted = ended + 1;
    while (ended < wanted) {
      Completion completion;
      if (client->Poll(std::span(&completion, 1)) == 1) {
        REQUIRE(completion.status == absl::OkStatus());
        ++ended;
        continue;
      }
      if (!client->PrepareToSleep()) continue;
      ++slept;
      pollfd waiting{*fd, POLLIN, 0};
      REQUIRE(poll(&waiting, 1, 60'000) == 1);
    }
  }
  CHECK(client->Get("n").value() == "300");
  CHECK(slept > 0);
  // With nobody to answer, the deadline wakes the loop; in a session that nothing has broken yet.
  client = kvd.Connect();
  const auto fresh_fd = client->EventFd();
  KVD_REQUIRE_OK(fresh_fd);
  kvd.process().Stop();
  WriteOptions options;
  options.deadline = milliseconds(30);
  client->StartPut("k", "v", Async{1, {}}, options);
  Completion completion;
  while (client->Poll(std::span(&completion, 1)) == 0) {
    if (!client->PrepareToSleep()) continue;
    pollfd waiting{*fresh_fd, POLLIN, 0};
    REQUIRE(poll(&waiting, 1, 60'000) == 1);
  }
  kvd.process().Continue();
  KVD_REQUIRE_CODE(completion.status, kDeadlineExceeded);
}

TEST_CASE_METHOD(
    Fixture, "Client: what is not done by its deadline comes back as such, and the rest goes on") {
  kvd.process().Stop();
  WriteOptions short_put;
  short_put.deadline = milliseconds(20);
  for (uint64_t i = 0; i < 40; ++i) client->StartPut("k", "v", Async{i, {}}, short_put);
  client->StartGet("k", Async{100, {}});
  std::vector<Completion> some(64);
  std::map<uint64_t, absl::Status> ended;
  while (client->outstanding() != 0) {
    const size_t count = client->Wait(some, seconds(60));
    for (size_t i = 0; i < count; ++i) ended[some[i].tag] = some[i].status;
  }
  REQUIRE(ended.size() == 41);
  for (uint64_t i = 0; i < 40; ++i) CHECK(absl::IsDeadlineExceeded(ended[i]));
  CHECK(absl::IsNotFound(ended[100]));  // a GET needs nobody
  kvd.process().Continue();
  KVD_REQUIRE_OK(client->Put("k", "after"));
  CHECK(client->Get("k").value() == "after");
}

TEST_CASE_METHOD(Fixture,
                 "Client: operations under way survive broken sessions, each taking effect once") {
  Random random(Seed());
  uint64_t started = 0;
  uint64_t ended = 0;
  std::vector<Completion> some(64);
  int broken = 0;
  uint64_t break_at = 0;
  while (ended < 3000) {
    while (started < 3000 && client->outstanding() < 100) {
      client->StartIncrement("n" + std::to_string(started % 10), 1, Async{started, {}});
      client->StartGet("n" + std::to_string(started % 10), Async{1'000'000, {}});
      ++started;
    }
    if (ended >= break_at) {
      broken += kvd.BreakSessions();
      break_at = ended + 1 + random.Uniform(100);
    }
    // By Wait, and by those who only ever poll.
    const size_t count = ended % 200 < 100 ? client->Wait(some, seconds(60)) : client->Poll(some);
    for (size_t i = 0; i < count; ++i) {
      if (some[i].tag == 1'000'000) {
        REQUIRE((some[i].status.ok() || absl::IsNotFound(some[i].status)));
        continue;
      }
      REQUIRE(some[i].status == absl::OkStatus());
      ++ended;
    }
  }
  if (kvd.can_break()) {
    CHECK(broken > 0);
    CHECK(client->counters().reconnects > 0);
  }
  for (int i = 0; i < 10; ++i) CHECK(client->Get("n" + std::to_string(i)).value() == "300");
}

}  // namespace kvd::test
