// doctor --perf against a map whose clock and counters are made up.
#include "client/cli/perf_probe.h"

#include "tests/support/fake_clock.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/fake_store.h"

namespace kvd::cli::test {
namespace {

// A GET takes 3 us, 1 READ more where nothing is remembered, and a plain READ 2 us.
class TimedStore : public FakeStore {
 public:
  TimedStore(FakeServer& server, kvd::test::FakeClock& clock, bool remembers, bool over_rdma)
      : FakeStore(server), clock_(clock), remembers_(remembers), over_rdma_(over_rdma) {}

  absl::Status Get(std::string_view key, std::string& value, ItemInfo& info) override {
    clock_.AdvanceNs(3000);
    reads_.reads += 1;
    reads_.read_bytes += remembers_ ? 96 : 1024;
    reads_.location_hits += remembers_ ? 1 : 0;
    return FakeStore::Get(key, value, info);
  }
  ReadCounters Reads() const override { return reads_; }
  absl::StatusOr<std::chrono::nanoseconds> PlainRead(uint64_t bytes) override {
    if (!over_rdma_) return FakeStore::PlainRead(bytes);
    return std::chrono::nanoseconds(bytes == 1024 ? 2000 : 1500);
  }

 private:
  kvd::test::FakeClock& clock_;
  const bool remembers_;
  const bool over_rdma_;
  ReadCounters reads_;
};

struct Rig {
  FakeServer server;
  kvd::test::FakeClock clock;
  std::unique_ptr<TimedStore> store;
  PerfOptions options;
  PerfFacts facts;
  bool over_rdma = true;

  Rig() {
    server.statistics = {{"page_kind", "2 MiB"}, {"poll_mode", "adaptive"},
                         {"items", "9"},         {"local_items", "8"},
                         {"buckets", "4"},       {"rdma_mtu_bytes", "4096"}};
    options.key_prefix = "kvcli-perf:01:";
    options.seed = kvd::test::Seed();
    options.interrupted = [] { return false; };
    options.connect = [this](uint32_t entries) -> absl::StatusOr<KeyValueStore*> {
      store = std::make_unique<TimedStore>(server, clock, entries != 0, over_rdma);
      return store.get();
    };
  }

  PerfOutcome Measure() { return MeasurePerf(options, clock, facts); }
  std::string Report() {
    DoctorReport report;
    ReportPerf(facts, options, report);
    return FormatReport(OutputFormat::kSimple, report);
  }
};

TEST_CASE("Perf: GETs by kind, each beside plain READs of as many bytes, and nothing is written") {
  Rig rig;
  for (int i = 0; i < 9; ++i) rig.server.Insert("mine" + std::to_string(i), std::string(64, 'v'));
  rig.server.Insert("long", std::string(100'000, 'v'));
  const auto items = rig.server.items.size();
  const uint64_t version = rig.server.last_version;
  CHECK(rig.Measure().status.ok());
  CHECK(rig.server.items.size() == items);
  CHECK(rig.server.last_version == version);
  REQUIRE(rig.facts.cold.has_value());
  CHECK(rig.facts.over_rdma);
  CHECK(rig.facts.cold->gets == 2000);
  CHECK(std::abs(rig.facts.cold->p50_us - 3) < 0.05);
  CHECK(rig.facts.cold->reads == 1);
  CHECK(rig.facts.cold->read_bytes == 1024);
  CHECK(std::abs(rig.facts.cold->floor_us - 2) < 0.05);
  CHECK(rig.facts.cold->value_bytes == 64);
  REQUIRE(rig.facts.known.has_value());
  CHECK(rig.facts.known->location_hits == 2000);
  CHECK(std::abs(rig.facts.known->floor_us - 1.5) < 0.05);
  REQUIRE(rig.facts.large.has_value());
  CHECK(rig.facts.large->gets < 2000);
  REQUIRE(rig.facts.miss.has_value());
  CHECK(rig.facts.page_kind == "2 MiB");
  CHECK(rig.facts.server_mtu_bytes == 4096);
  const std::string report = rig.Report();
  INFO(report);
  CHECK_THAT(report, Catch::Contains("GET, cold") && Catch::Contains("1.00 READs of 1024 B") &&
                         Catch::Contains("1.5 times that") && Catch::Contains("verification") &&
                         Catch::Contains("100.0 % of which it answered") &&
                         Catch::Contains("GET, large") && Catch::Contains("GET, missed"));
  // Whatever of the store's is private stays so.
  CHECK_THAT(report, !Catch::Contains("mine") && !Catch::Contains("vvv"));
}

TEST_CASE("Perf: what kvd's pollers waited for a processor is that of the time that was measured") {
  Rig rig;
  rig.server.Insert("mine", "v");
  rig.server.statistics.push_back({"poller_queued_us", "5000"});
  rig.server.statistics.push_back({"poller_stalled_us", "300"});
  const auto connect = rig.options.connect;
  rig.options.connect = [&](uint32_t entries) {
    if (entries != 0) {  // the last of what is measured
      rig.server.statistics.pop_back();
      rig.server.statistics.pop_back();
      rig.server.statistics.push_back({"poller_queued_us", "12000"});
      rig.server.statistics.push_back({"poller_stalled_us", "200"});
    }
    return connect(entries);
  };
  CHECK(rig.Measure().status.ok());
  CHECK(rig.facts.server_queued_us == 7000);
  CHECK(rig.facts.server_stalled_us == 0);  // of another kvd
}

TEST_CASE("Perf: an empty store tells what cannot be measured; --write measures and cleans up") {
  Rig rig;
  CHECK(rig.Measure().status.ok());
  CHECK_FALSE(rig.facts.cold.has_value());
  CHECK(rig.facts.miss.has_value());
  CHECK(rig.server.last_version == 0);
  CHECK_THAT(rig.Report(), Catch::Contains("the store has no item") && Catch::Contains("--write"));

  Rig writing;
  writing.options.writes = true;
  writing.server.Insert("mine", "stays");
  const PerfOutcome outcome = writing.Measure();
  CHECK(outcome.status.ok());
  CHECK(outcome.left_behind.ok());
  CHECK(writing.facts.cold.has_value());
  CHECK(writing.server.last_version > 64);
  CHECK(writing.server.items.size() == 1);
  CHECK_THAT(writing.Report(), !Catch::Contains("the store has no item"));
}

TEST_CASE("Perf: over shared memory the floor is a copy, and there are no READs to name") {
  Rig rig;
  rig.over_rdma = false;
  rig.server.Insert("mine", "v");
  CHECK(rig.Measure().status.ok());
  CHECK_FALSE(rig.facts.over_rdma);
  CHECK_THAT(rig.Report(), Catch::Contains("1.00 reads of") && !Catch::Contains("READs"));
}

TEST_CASE("Perf: a server's error is the outcome, what was measured stays, and keys are told of") {
  Rig rig;
  rig.options.writes = true;
  const auto connect = rig.options.connect;
  rig.options.connect = [&](uint32_t entries) {
    if (entries != 0) rig.server.operation_error = absl::UnavailableError("gone; wait");
    return connect(entries);
  };
  const PerfOutcome outcome = rig.Measure();
  CHECK(absl::IsUnavailable(outcome.status));
  CHECK(absl::IsUnavailable(outcome.left_behind));
  CHECK(rig.facts.cold.has_value());
  CHECK_FALSE(rig.facts.known.has_value());
}

TEST_CASE("Perf: ends soon when interrupted") {
  Rig rig;
  rig.server.Insert("mine", "v");
  rig.options.interrupted = [] { return true; };
  CHECK(rig.Measure().status.ok());
  CHECK_FALSE(rig.facts.cold.has_value());
}

}  // namespace
}  // namespace kvd::cli::test
