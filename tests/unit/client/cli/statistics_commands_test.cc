#include <cerrno>
#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

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

TEST_CASE("stat: values of those that are named, in their order") {
  FakeServer server = WithStatistics();
  CHECK(RunCli(server, {"stat", "items"}).out == "3\n");
  CHECK(RunCli(server, {"stat", "odd", "items"}).out == "a\"\\n\n3\n");
  CHECK(RunCli(server, {"stat", "items", "-w", "json"}).out == "{\"items\":3}\n");
  CliResult result = RunCli(server, {"stat", "version", "item"});
  CHECK(result.exit == 1);
  CHECK(result.out.empty());
  CHECK(result.err == "kvcli: stat item: no such statistic; did you mean items?\n");
  CHECK(RunCli(server, {"stat", "curr_connections"}).err ==
        "kvcli: stat curr_connections: no such statistic; 'kvcli stat' prints all\n");
}

TEST_CASE("stat: again and again, with a session for administration each time") {
  FakeServer server = WithStatistics();
  CHECK(RunCli(server, {"stat", "items", "--interval=1ms", "-c3"}).out == "3\n3\n3\n");
  CHECK(server.connections == 3);
  server.statistics = {{"items", "3"}};
  CHECK(RunCli(server, {"stat", "-i1ms", "-c2"}).out == "items  3\n\nitems  3\n");
  CHECK(RunCli(server, {"stat", "-i1ms", "-c2", "-w", "json"}).out ==
        "{\"items\":3}\n{\"items\":3}\n");
  int calls = 0;
  CliResult result = RunCli(server, {"stat", "items", "--interval=1h"},
                            {.interrupted = [&] { return ++calls > 1; }});
  CHECK(result.exit == 130);
  CHECK(result.out == "3\n");
  result = RunCli(server, {"stat", "--count=3"});
  CHECK(result.exit == 2);
  CHECK(result.err == "kvcli: stat: --count is of those that --interval prints; add it\n");
  // Nobody reads any more.
  result =
      RunCli(server, {"stat", "items", "--interval=1ms"}, {.out_bytes_max = 3, .out_errno = EPIPE});
  CHECK(result.exit == 141);
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
  server.statistics = {{"evicted_items", "7"}, {"no_space", "0"}};
  CHECK(RunCli(server, {"info"}).out ==
        "server         shm:/run/fake.sock\nevicted_items  7\nno_space       0\n");
  server.statistics = {{"memory_bytes", "67108864"}, {"unrelated", "1"}};
  CHECK(RunCli(server, {"info"}).out == "server  shm:/run/fake.sock\nmemory  64 MiB\n");
  CHECK(RunCli(server, {"info", "-w", "json"}).out ==
        "{\"server\":\"shm:/run/fake.sock\",\"memory_bytes\":67108864}\n");
  server.operation_error = absl::UnavailableError("gone; wait");
  CHECK(RunCli(server, {"info"}).exit == 3);
}

}  // namespace
}  // namespace kvd::cli::test
