#include <chrono>
#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

using std::chrono::microseconds;

TEST_CASE("ping: shortest, mean and longest round trip") {
  FakeServer server;
  server.round_trips = {microseconds(10), microseconds(30), microseconds(20)};
  CHECK(RunCli(server, {"ping"}).out ==
        "PONG from shm:/run/fake.sock: 1 round trip, min/avg/max 10.0/10.0/10.0 us\n");
  CHECK(RunCli(server, {"ping", "-c", "3"}).out ==
        "PONG from shm:/run/fake.sock: 3 round trips, min/avg/max 10.0/20.0/30.0 us\n");
  CHECK(RunCli(server, {"ping", "-c3", "-w", "json"}).out ==
        "{\"count\":3,\"min_us\":10.0,\"avg_us\":20.0,\"max_us\":30.0}\n");
  CHECK(RunCli(server, {"ping", "-w", "table"}).out.find("AVG US") != std::string::npos);
}

TEST_CASE("ping: none, no answer, and a Ctrl-C in between") {
  FakeServer server;
  CliResult result = RunCli(server, {"ping", "-c", "0"});
  CHECK(result.exit == 2);
  CHECK(result.err == "kvcli: ping: --count=0 pings nothing; give 1 or more\n");
  int calls = 0;
  result = RunCli(server, {"ping", "-c", "9"}, {.interrupted = [&calls] { return ++calls > 2; }});
  CHECK(result.exit == 130);
  CHECK(result.out ==
        "PONG from shm:/run/fake.sock: 2 round trips, min/avg/max 10.0/10.0/10.0 us\n");
  server.operation_error = absl::DeadlineExceededError("late; wait");
  result = RunCli(server, {"ping"});
  CHECK(result.exit == 4);
  CHECK(result.err == "kvcli: ping: late; wait\n");
}

}  // namespace
}  // namespace kvd::cli::test
