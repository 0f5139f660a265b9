#include <chrono>
#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

using std::chrono::microseconds;

FakeServer WithStatistics() {
  FakeServer server;
  server.statistics = {{"version", "0.1.0"}, {"items", "3"}, {"load", "0.5"}, {"odd", "a\"\n"}};
  return server;
}

TEST_CASE("stat: names and values, in each form") {
  FakeServer server = WithStatistics();
  CHECK(RunCli(server, {"stat"}).out ==
        "version  0.1.0\nitems    3\nload     0.5\nodd      a\"\\n\n");
  CHECK(RunCli(server, {"stat", "-w", "json"}).out ==
        "{\"version\":\"0.1.0\",\"items\":3,\"load\":0.5,\"odd\":\"a\\\"\\\\n\"}\n");
  CHECK(RunCli(server, {"stat", "-w", "table"}).out ==
        "+---------+-------+\n"
        "| NAME    | VALUE |\n"
        "+---------+-------+\n"
        "| version | 0.1.0 |\n"
        "| items   |     3 |\n"
        "| load    |   0.5 |\n"
        "| odd     | a\"\\n  |\n"
        "+---------+-------+\n");
  server.statistics.clear();
  CHECK(RunCli(server, {"stat", "-w", "json"}).out == "{}\n");
  server.operation_error = absl::UnavailableError("gone; wait");
  const CliResult result = RunCli(server, {"stat"});
  CHECK(result.exit == 3);
  CHECK(result.err == "kvcli: stat: gone; wait\n");
}

TEST_CASE("stat: a table fits the terminal, and large numbers are strings in JSON") {
  FakeServer server;
  server.statistics = {{"incarnation", "18446744073709551615"},
                       {"small", "9007199254740991"},
                       {"why", std::string(200, 'x')}};
  const std::string table = RunCli(server, {"stat", "-w", "table"}).out;
  size_t shown = 0;
  for (size_t begin = 0; begin < table.size(); begin = table.find('\n', begin) + 1) {
    CHECK(table.find('\n', begin) - begin <= 80);
  }
  for (const char c : table) shown += c == 'x' ? 1 : 0;
  CHECK(shown == 200);
  CHECK_THAT(RunCli(server, {"stat", "-w", "json"}).out,
             Catch::StartsWith("{\"incarnation\":\"18446744073709551615\","
                               "\"small\":9007199254740991,"));
}

TEST_CASE("info: where the server is, and what it is") {
  FakeServer server = WithStatistics();
  CHECK(RunCli(server, {"info"}).out ==
        "server   shm:/run/fake.sock\nversion  0.1.0\nitems    3\n");
  server.statistics = {{"memory_bytes", "67108864"}, {"unrelated", "1"}};
  CHECK(RunCli(server, {"info"}).out == "server  shm:/run/fake.sock\nmemory  64 MiB\n");
  CHECK(RunCli(server, {"info", "-w", "json"}).out ==
        "{\"server\":\"shm:/run/fake.sock\",\"memory_bytes\":67108864}\n");
  server.operation_error = absl::UnavailableError("gone; wait");
  CHECK(RunCli(server, {"info"}).exit == 3);
}

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
