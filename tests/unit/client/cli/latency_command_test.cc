#include <algorithm>
#include <chrono>
#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

using std::chrono::microseconds;

// READs of 2 us, but for each tenth of 12 us; requests of 5 and 15 us in turn.
struct TimedServer {
  TimedServer() {
    server.Insert("k", "v");
    server.round_trips = {microseconds(5), microseconds(15)};
    server.on_exists = [this] { clock.AdvanceNs(++reads % 10 == 0 ? 12'000 : 2'000); };
    options.clock = &clock;
  }

  CliResult Run(const std::vector<std::string>& arguments) {
    return RunCli(server, arguments, options);
  }

  FakeServer server;
  kvd::test::FakeClock clock;
  CliOptions options;
  int reads = 0;
};

TEST_CASE("--latency: into a pipe, one line after a second") {
  TimedServer timed;
  const CliResult result = timed.Run({"--latency"});
  CHECK(result.exit == 0);
  CHECK(result.out == "min/avg/max us: GET 2.0/3.0/12.0  request 5.0/10.0/15.0  (100 samples)\n");
  CHECK(result.err.empty());
  CHECK_THAT(timed.Run({"-i", "0.1", "--latency"}).out, Catch::Contains("(10 samples)"));
}

TEST_CASE("latency: ends after so many samples, in each form") {
  TimedServer timed;
  CHECK_THAT(timed.Run({"latency", "-c", "1"}).out, Catch::EndsWith("(1 sample)\n"));
  CHECK_THAT(timed.Run({"latency", "-c4", "-w", "json"}).out,
             Catch::StartsWith("{\"samples\":4,\"get_us\":{\"min\":2.0,\"avg\":"));
  CHECK_THAT(timed.Run({"latency", "-c4", "-w", "table"}).out, Catch::Contains("| request |"));
}

TEST_CASE("--latency: on a terminal one line is updated until Ctrl-C, which leaves the last") {
  TimedServer timed;
  int pauses = 0;
  timed.options.out_is_terminal = true;
  timed.options.interrupted = [&] { return ++pauses > 300; };
  const CliResult result = timed.Run({"--latency"});
  CHECK(result.exit == 130);
  // Drawn ten times a second, for three of them, and cleared.
  CHECK(std::count(result.out.begin(), result.out.end(), '\r') <= 32);
  CHECK(std::count(result.out.begin(), result.out.end(), '\r') >= 29);
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 1);
  CHECK_THAT(result.out, Catch::EndsWith("\r\x1b[Kmin/avg/max us: GET 2.0/3.0/12.0  request "
                                         "5.0/10.0/15.0  (301 samples)\n"));
}

TEST_CASE("--latency-history: a line for every 15 s, or --interval, each of its own samples") {
  TimedServer timed;
  const int64_t start_ns = timed.clock.NowMonotonicNs();
  CliResult result = timed.Run({"--latency-history", "-c", "2"});
  CHECK(result.exit == 0);
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 2);
  const int64_t passed_ns = timed.clock.NowMonotonicNs() - start_ns;
  CHECK(passed_ns > 30'000'000'000);
  CHECK(passed_ns < 30'100'000'000);
  result = timed.Run({"latency", "--lines", "-i", "100ms", "-c", "3"});
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 3);
  CHECK_THAT(result.out, Catch::Contains("(10 samples)"));
}

TEST_CASE("latency: of the item that is named; of none where the store is empty, which it says") {
  TimedServer timed;
  CHECK(timed.Run({"latency", "-c1", "--key=k"}).err.empty());
  CHECK(timed.Run({"latency", "-c1", "--hex", "--key=zz"}).exit == 2);
  timed.server.items.clear();
  const CliResult empty = timed.Run({"latency", "-c1"});
  CHECK(empty.exit == 0);
  CHECK(empty.err ==
        "kvcli: latency: the store is empty: what is read is that a key is not there\n");
  timed.server.operation_error = absl::UnavailableError("gone; wait");
  CHECK(timed.Run({"latency"}).exit == 3);
}

}  // namespace
}  // namespace kvd::cli::test
