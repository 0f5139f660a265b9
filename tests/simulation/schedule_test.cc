// Histories of clients and a kvd over a network that a seed plays; and what such schedules have
// found.
#include "tests/simulation/schedule.h"

#include <memory>
#include <string>
#include <vector>

#include "client/kv_client.h"
#include "tests/simulation/simulated_kvd.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr uint64_t kSchedules = 400;

TEST_CASE("Schedules: every history is linearizable, and ends in time") {
  const uint64_t seed = uint64_t{Catch::rngSeed()} << 16;
  ScheduleResult sum;
  for (uint64_t i = 0; i < kSchedules; ++i) {
    ScheduleOptions options;
    options.seed = seed + i;
    options.faults = i % 4 != 0;
    const ScheduleResult result = RunSchedule(options);
    INFO("tests/simulation:schedules --seed=" << options.seed);
    INFO(result.failure);
    REQUIRE(result.ok);
    sum.operations += result.operations;
    sum.breaks += result.breaks;
    sum.torn_reads += result.torn_reads;
    sum.deaths += result.deaths;
    sum.expiring += result.expiring;
  }
  // Or it proved less than it says.
  CHECK(sum.operations > kSchedules * 50);
  CHECK(sum.breaks > kSchedules);
  CHECK(sum.torn_reads > kSchedules / 4);
  CHECK(sum.deaths > kSchedules / 16);
  CHECK(sum.expiring > kSchedules);
}

TEST_CASE("Schedules: a READ that was given up is not taken for the next one") {
  std::vector<std::shared_ptr<SimulatedLink>> links;
  SimulatedKvd::Options options;
  options.on_link = [&](const std::shared_ptr<SimulatedLink>& link) { links.push_back(link); };
  const auto kvd = SimulatedKvd::Create(options).value();
  const auto writer = kvd->Connect(/*mapped=*/false).value();
  KVD_REQUIRE_OK(writer->Put("key", "old"));
  for (const uint32_t locations : {0u, 64u}) {
    ClientOptions reading;
    reading.location_cache_entries = locations;
    const auto reader = kvd->Connect(/*mapped=*/false, reading).value();
    KVD_REQUIRE_OK(reader->Get("key"));

    SimulatedLink& link = *links.back();
    link.delayed = true;
    KVD_REQUIRE_CODE(reader->Get("key", {.deadline = std::chrono::milliseconds(20)}),
                     kDeadlineExceeded);
    REQUIRE(link.reads.size() == 1);
    link.reads.front().GoOn(UINT64_MAX);
    const std::string fresh = "new " + std::to_string(locations);
    KVD_REQUIRE_OK(writer->Put("key", fresh));
    link.delayed = false;
    CHECK(reader->Get("key").value() == fresh);
  }
}

}  // namespace
}  // namespace kvd::test
