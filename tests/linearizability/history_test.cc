// What many clients of a real kvd do and see is linearizable, whatever is killed or stopped
// meanwhile; and builds in which one safeguard is left out are found out, so the check would
// notice.
#include <cstdint>
#include <map>
#include <string>

#include "tests/linearizability/run_recorder.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

// A build with a planted fault must be found out within 20,000,000 operations. Short rounds are
// checked soon: a client without checksums was found after 10 to 34 of them. Where a reader must
// lose the processor between two loads, rounds are longer.
constexpr const char* kShortRounds = "--ops=50000 --rounds=400";
constexpr const char* kLongRounds = "--ops=500000 --rounds=40 --readers=3 --client_stops=40";

void RequireLinearizable(const Recorded& recorded) {
  INFO(recorded.output);
  REQUIRE(recorded.exit_status == 0);
  REQUIRE(recorded.counts.at("wrong_keys") == 0);
  REQUIRE(recorded.counts.at("undecided_keys") == 0);
}

// As many rounds as it takes until all of that has been seen: how much there is of it in one
// depends on who else uses the machine.
void RequireLinearizable(const std::string& flags, const std::map<std::string, uint64_t>& seen) {
  std::string until;
  for (const auto& [name, count] : seen) until += name + ":" + std::to_string(count) + ",";
  const Recorded recorded = RunRecorder("RECORDER", "KVD", flags + " --rounds=30 --until=" + until);
  RequireLinearizable(recorded);
  for (const auto& [name, count] : seen) {
    INFO(name);
    REQUIRE(recorded.counts.at(name) >= count);
  }
}

void RequireFound(const Recorded& recorded) {
  INFO(recorded.output);
  REQUIRE(recorded.exit_status == 3);
  REQUIRE(recorded.counts.at("wrong_keys") > 0);
}

}  // namespace

TEST_CASE("History: many clients on few keys, while the table grows") {
  // Large buckets, so that there are few in the first segment and splits begin early.
  RequireLinearizable("--ops=300000 --bucket_bytes=4096", {{"operations", 250'000},
                                                           {"keys", 5000},
                                                           {"torn_reads", 10},
                                                           {"moved_items", 100},
                                                           {"redirects", 1},
                                                           {"location_hits", 1000},
                                                           {"stale_locations", 100},
                                                           {"expired_items", 1},
                                                           {"scans", 10}});
}

TEST_CASE("History: the table grows and shrinks many times") {
  RequireLinearizable(
      "--ops=900000 --memory=16m --pollers=1 --bucket_bytes=4096 --fillers=0 "
      "--breathers=2 --client_stops=10",
      {{"merges", 200}, {"index_bytes_given_back", 1 << 20}, {"redirects", 20}});
}

TEST_CASE("History: clients are killed and stopped") {
  RequireLinearizable("--ops=150000 --client_kills=40 --client_stops=40", {{"unknown", 1}});
}

TEST_CASE("History: kvd is stopped, so that writes get no answer in time") {
  RequireLinearizable("--ops=100000 --kvd_stops=20 --client_kills=5 --deadline_ms=20",
                      {{"unknown", 20}});
}

TEST_CASE("History: kvd is killed and started anew") {
  RequireLinearizable("--ops=100000 --kvd_restarts=6 --client_kills=3", {{"unknown", 1}});
}

TEST_CASE("History: items are evicted") {
  RequireLinearizable("--ops=150000 --memory=4m --pollers=1 --evict", {{"evicted_items", 1}});
}

TEST_CASE("History: a round that cannot be decided does not end the search for a wrong one") {
  const Recorded recorded = RunRecorder("RECORDER", "KVD", "--ops=5000 --rounds=3 --steps_max=10");
  INFO(recorded.output);
  REQUIRE(recorded.exit_status == 4);
  REQUIRE(recorded.counts.at("undecided_keys") > 0);
  REQUIRE(recorded.counts.at("operations") > 2 * 5000);
}

TEST_CASE("History: a kvd that does not mark replaced items DEAD is found out") {
  RequireFound(RunRecorder("RECORDER", "KVD_WITHOUT_DEAD_MARK", kShortRounds));
}

TEST_CASE("History: a client that does not compare checksums is found out") {
  RequireFound(RunRecorder("RECORDER_WITHOUT_CHECKSUM", "KVD", kShortRounds));
}

TEST_CASE("History: a client that does not confirm misses is found out") {
  RequireFound(RunRecorder("RECORDER_WITHOUT_CONFIRMATION", "KVD", kLongRounds));
}

}  // namespace kvd::test
