// Writes of one client to one key take effect in the order in which the client started them, also
// where the value of one is pulled and that takes long; other keys do not wait. Pulls end here when
// the test says so.
#include <chrono>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "tests/simulation/simulated_kvd.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kPullDone = ServerEvent::Kind::kPullDone;
constexpr auto kClosed = ServerEvent::Kind::kClosed;

// With two pollers keys of both shards are used, so the owner of the key is the poller of the
// session or another one.
struct Fixture {
  Fixture() : pollers(GENERATE(1u, 2u)) {
    SimulatedKvd::Options options;
    options.pollers = pollers;
    kvd = SimulatedKvd::Create(options).value();
    client = kvd->Connect(true).value();
    Hold(kPullDone, true);
  }

  // Nothing may be under way when pollers that nobody drains go.
  ~Fixture() {
    Hold(kPullDone, false);
    Hold(kClosed, false);
    while (kvd->Turn()) continue;
  }

  void Hold(ServerEvent::Kind kind, bool held) {
    for (uint32_t i = 0; i < pollers; ++i) kvd->endpoint(i).Hold(kind, held);
  }

  size_t pulls_under_way() {
    size_t count = 0;
    for (uint32_t i = 0; i < pollers; ++i) count += kvd->endpoint(i).pulls_under_way();
    return count;
  }

  // Everybody does what there is to do; returns what has come back.
  std::vector<Completion> Settle() {
    std::vector<Completion> all;
    std::vector<Completion> some(16);
    bool moved = true;
    while (moved) {
      const size_t count = client->Poll(some);
      for (size_t i = 0; i < count; ++i) all.push_back(std::move(some[i]));
      moved = kvd->Turn() || count != 0;
    }
    return all;
  }

  // A pulled write that the client has given up while the pull goes on.
  void GiveUp(const std::string& key, const std::string& value) {
    WriteOptions options;
    options.deadline = milliseconds(1);
    // One whose time is over before it is sent is not sent.
    do {
      REQUIRE(absl::IsDeadlineExceeded(client->Put(key, value, options).status()));
    } while (pulls_under_way() == 0);
  }

  const uint32_t pollers;
  std::unique_ptr<SimulatedKvd> kvd;
  std::unique_ptr<Client> client;
  const std::string large = std::string(300'000, 'a');
  const std::string larger = std::string(400'000, 'b');
};

const char* const kKeys[] = {"1", "2", "3", "4", "5", "6"};

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "Poller: a write that its client gave up does not land after a later one") {
  for (const std::string key : kKeys) {
    GiveUp(key, large);
    client->StartPut(key, "new", Async{1, {}});
    CHECK(Settle().empty());
    Hold(kPullDone, false);
    const auto done = Settle();
    REQUIRE(done.size() == 1);
    CHECK(done[0].status == absl::OkStatus());
    CHECK(client->Get(key).value() == "new");
    Hold(kPullDone, true);
  }
}

TEST_CASE_METHOD(Fixture,
                 "Poller: a write of any kind waits for the pull of its key, others do not") {
  for (const std::string key : kKeys) {
    client->StartPut(key, large, Async{1, {}});
    client->StartAppend(key, "c", Async{2, {}});
    client->StartPut(key, larger, Async{3, {}});
    client->StartDelete(key, Async{4, {}});
    client->StartIncrement(key, 5, Async{5, {}});
    client->StartPut("other" + key, "value", Async{6, {}});
    client->StartPut("other large" + key, larger, Async{7, {}});
    client->StartGet(key, Async{8, {}});
    auto done = Settle();
    REQUIRE(done.size() == 2);
    for (const Completion& one : done) CHECK((one.tag == 6 || one.tag == 8));
    CHECK(pulls_under_way() == 2);

    Hold(kPullDone, false);
    done = Settle();
    REQUIRE(done.size() == 6);
    uint64_t tag = 0;
    uint64_t version = 0;
    for (const Completion& one : done) {
      CHECK(one.status == absl::OkStatus());
      if (one.tag == 7) continue;
      CHECK(one.tag == ++tag);
      CHECK(one.info.version > version);
      version = one.info.version;
    }
    CHECK(tag == 5);
    CHECK(client->Get(key).value() == "5");
    Hold(kPullDone, true);
  }
}

TEST_CASE_METHOD(Fixture, "Poller: what waits behind a pull that is refused goes on") {
  WriteOptions present;
  present.condition = Condition::IfPresent();
  for (const std::string key : kKeys) {
    GiveUp(key, large);
    client->StartDelete(key, Async{1, {}});
    client->StartPut(key, large, Async{2, {}}, present);
    client->StartPut(key, "last", Async{3, {}});
    CHECK(Settle().empty());
    Hold(kPullDone, false);
    const auto done = Settle();
    REQUIRE(done.size() == 3);
    CHECK(done[0].status == absl::OkStatus());
    CHECK(absl::IsNotFound(done[1].status));
    CHECK(done[2].status == absl::OkStatus());
    CHECK(client->Get(key).value() == "last");
    Hold(kPullDone, true);
  }
}

TEST_CASE_METHOD(Fixture, "Poller: another client's write does not wait for a pull of its key") {
  const auto other = kvd->Connect(true).value();
  for (const std::string key : kKeys) {
    GiveUp(key, large);
    KVD_REQUIRE_OK(other->Put(key, "from another"));
    CHECK(other->Get(key).value() == "from another");
  }
}

TEST_CASE_METHOD(Fixture,
                 "Poller: a pull of a broken session holds up no write, and lands after none") {
  // Whether or not kvd has noticed that the session is over.
  const bool noticed = GENERATE(true, false);
  for (const std::string key : kKeys) {
    Hold(kClosed, !noticed);
    GiveUp(key, large);
    for (uint32_t i = 0; i < pollers; ++i) kvd->endpoint(i).BreakSessions();
    KVD_REQUIRE_OK(client->Put(key, "new"));
    Hold(kPullDone, false);
    Settle();
    CHECK(client->Get(key).value() == "new");
    Hold(kClosed, false);
    Settle();
    CHECK(client->Get(key).value() == "new");
    Hold(kPullDone, true);
  }
}

TEST_CASE_METHOD(Fixture, "Poller: what waited when the session broke is sent again, in order") {
  for (const std::string key : kKeys) {
    Hold(kClosed, true);
    client->StartPut(key, large, Async{1, {}});
    client->StartAppend(key, "c", Async{2, {}});
    client->StartPrepend(key, "d", Async{3, {}});
    CHECK(Settle().empty());
    for (uint32_t i = 0; i < pollers; ++i) kvd->endpoint(i).BreakSessions();
    std::vector<Completion> done;
    std::vector<Completion> some(4);
    const size_t none = client->Wait(some, milliseconds(20));
    CHECK(none == 0);
    Hold(kPullDone, false);
    Hold(kClosed, false);
    while (client->outstanding() != 0) {
      const size_t count = client->Wait(some, seconds(60));
      REQUIRE(count != 0);
      for (size_t i = 0; i < count; ++i) done.push_back(std::move(some[i]));
    }
    REQUIRE(done.size() == 3);
    for (const Completion& one : done) CHECK(one.status == absl::OkStatus());
    CHECK(client->Get(key).value() == "d" + large + "c");
    Hold(kPullDone, true);
  }
}

}  // namespace kvd::test
