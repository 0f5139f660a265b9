// The same over RDMA: what clients see whose reads are READs, beside one that loads shared memory.
#include <string>

#include "tests/linearizability/run_recorder.h"
#include "tests/softroce/rdma_environment.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

std::string OverRdma(const std::string& flags) {
  const RdmaEnvironment environment = FindRdmaEnvironment();
  if (environment.sides.empty()) KVD_SKIP("no RDMA device here; it runs in the guest");
  return "--rdma=" + environment.server().address +
         " --memory=64m --pollers=1 --clients=4 --expiry_error_ms=1000 --deadline_ms=20000 " +
         flags;
}

void RequireLinearizable(const Recorded& recorded) {
  INFO(recorded.output);
  REQUIRE(recorded.exit_status == 0);
  REQUIRE(recorded.counts.at("operations") > 0);
  REQUIRE(recorded.counts.at("wrong_keys") == 0);
  REQUIRE(recorded.counts.at("undecided_keys") == 0);
}

}  // namespace

TEST_CASE("RDMA history: many clients on few keys") {
  RequireLinearizable(RunRecorder("RECORDER", "KVD", OverRdma("--ops=15000")));
}

TEST_CASE("RDMA history: clients are killed and stopped") {
  const Recorded recorded = RunRecorder("RECORDER", "KVD",
                                        OverRdma("--ops=8000 --client_kills=6 --client_stops=4 "
                                                 "--rounds=10 --until=unknown:1"));
  RequireLinearizable(recorded);
  REQUIRE(recorded.counts.at("unknown") > 0);
}

TEST_CASE("RDMA history: kvd is killed and started anew") {
  RequireLinearizable(RunRecorder("RECORDER", "KVD", OverRdma("--ops=6000 --kvd_restarts=2")));
}

TEST_CASE("RDMA history: items are evicted") {
  const Recorded recorded =
      RunRecorder("RECORDER", "KVD",
                  OverRdma("--ops=12000 --memory=4m --evict --clients=2 "
                           "--fillers=3 --rounds=10 --until=evicted_items:1"));
  RequireLinearizable(recorded);
  REQUIRE(recorded.counts.at("evicted_items") > 0);
}

// Within so many operations: 100,000.
TEST_CASE("RDMA history: a kvd that does not mark replaced items DEAD is found out") {
  const Recorded recorded =
      RunRecorder("RECORDER", "KVD_WITHOUT_DEAD_MARK", OverRdma("--ops=10000 --rounds=10"));
  INFO(recorded.output);
  REQUIRE(recorded.exit_status == 3);
  REQUIRE(recorded.counts.at("wrong_keys") > 0);
}

}  // namespace kvd::test
