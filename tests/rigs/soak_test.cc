// A short soak: all was right, everything was given back, and something of each kind happened.
#include <string>

#include "tests/linearizability/run_recorder.h"
#include "tests/support/test.h"

namespace kvd::test {

TEST_CASE("Soak: what clients held and wrote is given back after each cycle") {
  const Recorded soak =
      RunRecorder("SOAK", "KVD", "--cycles=4 --seconds=0 --cycle_operations=10000");
  INFO(soak.output);
  REQUIRE(soak.exit_status == 0);
  CHECK(soak.counts.at("wrong_answers") == 0);
  CHECK(soak.counts.at("operations") >= 90'000);
  for (const char* what : {"hits", "absent", "reconnects", "client_kills", "expired_items",
                           "evicted_items", "splits", "merges"}) {
    INFO(what);
    CHECK(soak.counts.at(what) > 0);
  }
}

TEST_CASE("Soak: clients that stay connected are found out") {
  const Recorded soak = RunRecorder(
      "SOAK", "KVD", "--cycles=1 --seconds=0 --cycle_operations=500 --left_connected=1");
  INFO(soak.output);
  REQUIRE(soak.exit_status == 3);
  REQUIRE(soak.output.find("sessions 2 for 1") != std::string::npos);
}

}  // namespace kvd::test
