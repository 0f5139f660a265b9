// What a kvd learns of what its clients do by themselves, and when.
#include <memory>
#include <string>
#include <vector>

#include "client/internal/count_report.h"
#include "client/kv_client.h"
#include "tests/simulation/simulated_kvd.h"
#include "tests/simulation/virtual_time.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

class Fixture {
 public:
  Fixture() {
    VirtualTime::Begin(1, [](int64_t until_ns) { VirtualTime::AdvanceTo(until_ns); });
    SimulatedKvd::Options options;
    options.on_link = [this](const std::shared_ptr<SimulatedLink>& link) {
      link_ = link;
      if (!takes_counts_) link->welcome.feature_bits = 0;
    };
    options.turn = [this] { return on_turn_ ? on_turn_() : kvd_->Turn(); };
    kvd_ = SimulatedKvd::Create(options).value();
    const auto writer = kvd_->Connect(true).value();
    KVD_REQUIRE_OK(writer->Put("k", "v"));
  }
  ~Fixture() {
    client_.reset();
    kvd_.reset();
    VirtualTime::End();
  }

  // Each operation of it looks at the clock.
  void Connect(bool mapped, uint32_t credits = 16) {
    ClientOptions options;
    options.latency_sampling = 1;
    options.credits = credits;
    client_ = kvd_->Connect(mapped, options).value();
  }

  void Get(int hits, int misses = 0) {
    std::string value;
    for (int i = 0; i < hits; ++i) KVD_REQUIRE_OK(client_->Get("k", value));
    for (int i = 0; i < misses; ++i) REQUIRE(absl::IsNotFound(client_->Get("none", value)));
    while (kvd_->Turn()) continue;
  }
  static void WaitUntilDue() { VirtualTime::Advance(CountReport::kEachNs); }

  ReportedCounts Told() {
    while (kvd_->Turn()) continue;
    return kvd_->poller(0).counters().reported.get();
  }
  uint64_t Reports() {
    while (kvd_->Turn()) continue;
    return kvd_->poller(0).counters().requests[static_cast<size_t>(Opcode::kHits)].get();
  }

 protected:
  bool takes_counts_ = true;
  std::function<bool()> on_turn_;
  std::shared_ptr<SimulatedLink> link_;  // the last one
  std::unique_ptr<SimulatedKvd> kvd_;
  std::unique_ptr<Client> client_;
};

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "Told counts: now and then, exactly, and only if there is something new") {
  Connect(/*mapped=*/GENERATE(true, false));
  Get(8, 2);
  CHECK(Told().gets == 0);
  WaitUntilDue();
  Get(1);
  CHECK(Told().gets == 11);
  CHECK(Told().hits == 9);
  CHECK(Told().misses == 2);
  CHECK(Told().reads == client_->counters().reads);
  CHECK(Told().read_bytes == client_->counters().read_bytes);
  CHECK(Told().fallbacks == 0);
  CHECK(Told().read_errors == 0);
  Get(5);
  CHECK(Told().gets == 11);
  WaitUntilDue();
  KVD_REQUIRE_OK(client_->Ping().status());  // after which there is a look at the clock as well
  CHECK(Told().gets == 16);
  CHECK(Reports() == 2);
  for (int i = 0; i < 5; ++i) {
    WaitUntilDue();
    KVD_REQUIRE_OK(client_->Ping().status());
  }
  CHECK(Reports() == 2);
}

TEST_CASE_METHOD(Fixture, "Told counts: by GETs of many keys, started ones and writes as well") {
  Connect(/*mapped=*/GENERATE(true, false));
  const std::vector<std::string_view> keys = {"k", "k", "none"};
  std::vector<GetResult> results(keys.size());
  KVD_REQUIRE_OK(client_->MultiGet(keys, results));
  WaitUntilDue();
  KVD_REQUIRE_OK(client_->MultiGet(keys, results));
  CHECK(Told().gets == 6);
  CHECK(Told().hits == 4);
  WaitUntilDue();
  client_->StartGet("k", Async{});
  Completion completion;
  while (client_->outstanding() != 0) client_->Poll(std::span(&completion, 1));
  CHECK(Told().gets == 7);
  Get(1);
  WaitUntilDue();
  KVD_REQUIRE_OK(client_->Put("k", "w"));
  CHECK(Told().gets == 8);
}

TEST_CASE_METHOD(Fixture, "Told counts: what is left is told when the client is closed") {
  Connect(/*mapped=*/GENERATE(true, false));
  Get(3, 1);
  client_.reset();
  CHECK(Told().gets == 4);
  CHECK(Told().misses == 1);
  Connect(true);
  KVD_REQUIRE_OK(client_->Put("k", "v"));
  client_.reset();  // nothing to tell
  CHECK(Reports() == 1);
  CHECK(Told().gets == 4);
}

TEST_CASE_METHOD(Fixture, "Told counts: over sessions that break nothing is told twice, or lost") {
  Connect(/*mapped=*/GENERATE(true, false));
  Get(5);
  WaitUntilDue();
  Get(1);
  CHECK(Told().gets == 6);
  Get(7);
  kvd_->endpoint(0).BreakSessions();
  KVD_REQUIRE_OK(client_->Put("k", "v"));
  REQUIRE(client_->counters().reconnects == 1);
  CHECK(Told().gets == 6);
  WaitUntilDue();
  Get(1);
  CHECK(Told().gets == 14);
  WaitUntilDue();
  Get(1);
  CHECK(Told().gets == 15);
  client_.reset();
  CHECK(Told().gets == 15);
}

TEST_CASE_METHOD(Fixture, "Told counts: the last credit is not taken for it, but at the end") {
  Connect(true, /*credits=*/1);
  Get(2);
  WaitUntilDue();
  Get(2);
  CHECK(Reports() == 0);
  client_.reset();
  CHECK(Told().gets == 4);
}

TEST_CASE_METHOD(Fixture, "Told counts: a server of before is told nothing, and works") {
  takes_counts_ = false;
  Connect(/*mapped=*/GENERATE(true, false));
  Get(3, 1);
  WaitUntilDue();
  Get(3, 1);
  client_.reset();
  CHECK(Reports() == 0);
}

TEST_CASE_METHOD(Fixture,
                 "Told counts: a session that broke under a READ is told by the next one") {
  Connect(/*mapped=*/false);
  Get(1);
  const std::shared_ptr<SimulatedLink> first = link_;
  first->delayed = true;  // its READs do not arrive by themselves
  on_turn_ = [&] {
    if (first->reads.empty()) return kvd_->Turn();
    first->Break("the peer does not answer");
    return true;
  };
  Get(1);
  CHECK(client_->counters().read_errors == 1);
  CHECK(client_->counters().reconnects == 1);
  client_.reset();
  CHECK(Told().read_errors == 1);
  CHECK(Told().gets == 2);
}

TEST_CASE_METHOD(Fixture, "Told counts: a session that breaks between READs is no READ error") {
  Connect(/*mapped=*/false);
  Get(1);
  kvd_->endpoint(0).BreakSessions();
  KVD_REQUIRE_OK(client_->Put("k", "v"));
  CHECK(client_->counters().reconnects == 1);
  CHECK(client_->counters().read_errors == 0);
}

}  // namespace kvd::test
