#include "client/bench/kvbench/runner.h"

#include <string>

#include "client/bench/kvbench/bench_key.h"
#include "client/bench/kvbench/loop.h"
#include "common/base/clock.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/bench/kvbench/map_store.h"

namespace kvd::bench {
namespace {

Workload Work(const char* mix, uint64_t operations) {
  const auto named = ParseMix(mix);
  KVD_REQUIRE_OK(named);
  Workload work;
  work.mix = named->mix;
  work.distribution = named->distribution;
  work.keys = 100;
  work.operations = operations;
  return work;
}

RunResult RunOn(MapItems& items, const Workload& work) {
  return Run(work, MapStores(items), {.interrupted = [] { return false; }, .loading = {}});
}

uint64_t Count(const RunResult& result, Operation operation) {
  return result.sum.operations[static_cast<size_t>(operation)];
}

TEST_CASE("Runner: every mix does as many operations as were asked for") {
  for (const char* mix : {"95:5", "a", "b", "c", "d", "f"}) {
    for (const size_t batch : {size_t{1}, size_t{7}}) {
      CAPTURE(mix, batch);
      MapItems items;
      Workload work = Work(mix, 2100);
      work.clients = 3;
      work.batch = batch;
      const RunResult result = RunOn(items, work);
      CHECK_FALSE(result.failure.has_value());
      CHECK(result.measured);
      uint64_t all = 0;
      uint64_t timed = 0;
      for (size_t i = 0; i < kOperations; ++i) {
        all += result.sum.operations[i];
        timed += result.sum.times[i].count();
        CHECK((result.sum.operations[i] > 0) == work.mix.Has(static_cast<Operation>(i)));
      }
      CHECK(all == 2100);
      CHECK(timed == 2100 / batch);
      CHECK(result.sum.not_found == 0);
      CHECK(items.items.size() == 100 + Count(result, Operation::kInsert));
    }
  }
}

TEST_CASE("Runner: the load phase stores every item, and can be left out") {
  MapItems items;
  Workload work = Work("c", 50);
  work.clients = 7;
  RunOn(items, work);
  CHECK(items.items.size() == 100);
  MapItems nothing;
  work.load = false;
  const RunResult result = RunOn(nothing, work);
  CHECK(nothing.items.empty());
  CHECK(result.sum.not_found == 50);
}

TEST_CASE("Runner: misses that were asked for are no losses") {
  MapItems items;
  Workload work = Work("c", 10'000);
  work.missing = 0.25;
  const RunResult result = RunOn(items, work);
  CHECK(result.sum.not_found == 0);
  CHECK(result.sum.misses > 2000);
  CHECK(result.sum.misses < 3000);
}

TEST_CASE("Runner: a value of another key ends the run as corrupt data") {
  for (const size_t batch : {size_t{1}, size_t{4}}) {
    MapItems items;
    int gets = 0;
    items.on_get = [&](std::string_view, std::string& value) {
      if (++gets == 500) FillValue(12345, 1, value.data(), value.size());
      return absl::OkStatus();
    };
    Workload work = Work("c", 100'000);
    work.batch = batch;
    const RunResult result = RunOn(items, work);
    REQUIRE(result.failure.has_value());
    CHECK(absl::IsDataLoss(result.failure->status));
    CHECK(result.failure->asked.starts_with("get "));
    CHECK(result.measured);  // what came before is not lost
    CHECK(Count(result, Operation::kGet) <= 504);
  }
}

TEST_CASE("Runner: unless nothing is to be verified") {
  MapItems items;
  items.on_get = [](std::string_view, std::string& value) {
    value.back() ^= 1;
    return absl::OkStatus();
  };
  Workload work = Work("c", 100);
  CHECK(RunOn(items, work).failure.has_value());
  work.verify = Verify::kHead;
  CHECK_FALSE(RunOn(items, work).failure.has_value());
  work.verify = Verify::kOff;
  CHECK_FALSE(RunOn(items, work).failure.has_value());
}

TEST_CASE("Runner: a store that is full ends the load, and nothing was measured") {
  MapItems items;
  items.on_put = [&items] {
    return items.items.size() < 50 ? absl::OkStatus() : absl::ResourceExhaustedError("full");
  };
  const RunResult result = RunOn(items, Work("c", 100));
  REQUIRE(result.failure.has_value());
  CHECK(result.failure->asked == "load");
  CHECK(absl::IsResourceExhausted(result.failure->status));
  CHECK_FALSE(result.measured);
}

TEST_CASE("Runner: a condition that fails is tried again, and counted") {
  MapItems items;
  int gets = 0;
  items.on_get = [&](std::string_view key, std::string&) {
    if (++gets % 10 == 0)
      items.items.find(key)->second.second = ++items.version;  // somebody else wrote
    return absl::OkStatus();
  };
  Workload work = Work("f", 1000);
  work.modify_if_version = true;
  const RunResult result = RunOn(items, work);
  CHECK_FALSE(result.failure.has_value());
  CHECK(Count(result, Operation::kReadModifyWrite) > 300);
  CHECK(result.sum.conflicts > 10);
}

TEST_CASE("Runner: an interruption keeps what was measured") {
  MapItems items;
  Workload work = Work("c", 0);
  work.duration = std::chrono::hours(1);
  int asked = 0;
  const RunResult result = Run(work, MapStores(items),
                               {.interrupted = [&asked] { return ++asked > 20; }, .loading = {}});
  CHECK(result.interrupted);
  CHECK_FALSE(result.failure.has_value());
}

TEST_CASE("Runner: one operation in so many is timed") {
  MapItems items;
  Workload work = Work("c", 1000);
  work.sample = 10;
  const RunResult result = RunOn(items, work);
  CHECK(Count(result, Operation::kGet) == 1000);
  CHECK(result.sum.times[0].count() == 100);
}

TEST_CASE("Loop: an open loop times from when an operation was due, not from when it began") {
  MapItems items;
  const std::unique_ptr<Store> store = *MapStores(items)(0);
  Workload work = Work("c", 500);
  work.rate = 1000;
  const auto counter = std::make_unique<AcknowledgedCounter>();
  counter->Begin(work.keys);
  Traffic traffic(work, *counter, 0);
  const auto tally = std::make_unique<Tally>();
  const std::atomic<bool> stop{false};
  // As if something had held the client up for a second: the 500 operations of its first half were
  // due meanwhile.
  const int64_t second_ago_ns = RealClock::Get().NowMonotonicNs() - 1'000'000'000;
  Loop loop(work, *store, traffic, Pacer(work.rate, Arrivals::kConstant, second_ago_ns, 0, 1),
            *tally, stop, 500);
  KVD_REQUIRE_OK(RunSingle(loop));
  CHECK(tally->times[0].count() == 500);
  CHECK(tally->times[0].max() >= 1'000'000'000);
  CHECK(tally->times[0].min() >= 500'000'000);
}

}  // namespace
}  // namespace kvd::bench
