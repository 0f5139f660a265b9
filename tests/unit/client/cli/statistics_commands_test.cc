#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

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
  CliResult result =
      RunCli(server, {"stat", "items", "--interval=1h"}, {.interrupted = [] { return true; }});
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

TEST_CASE("stat: one screen on a terminal, and every name with --all") {
  FakeServer server;
  server.statistics = {{"version", "0.1.0"},
                       {"pid", "12"},
                       {"uptime_seconds", "7380"},
                       {"transports", "shm rdma"},
                       {"memory_bytes", "67108864"},
                       {"page_kind", "4 KiB"},
                       {"items", "200"},
                       {"local_items", "150"},
                       {"sessions", "2"},
                       {"sessions_max", "1024"},
                       {"requests_put", "77"},
                       {"rdma_device", std::string(200, 'x') + "\x1b[2J"}};
  const CliResult screen = RunCli(server, {"stat"}, {.out_is_terminal = true});
  CHECK(screen.exit == 0);
  CHECK_THAT(screen.out,
             Catch::Contains("kvd        0.1.0, pid 12, up 2 h 03 min, serves shm rdma"));
  CHECK_THAT(screen.out, Catch::Contains("memory     64 MiB, of 4 KiB pages\n"));
  CHECK_THAT(screen.out, Catch::Contains("items      200, 75.0 % within their bucket\n"));
  CHECK_THAT(screen.out, Catch::Contains("requests   put 77\n"));
  CHECK_THAT(screen.out, !Catch::Contains("\x1b"));
  size_t lines = 0;
  for (size_t begin = 0; begin < screen.out.size(); begin = screen.out.find('\n', begin) + 1) {
    CHECK(screen.out.find('\n', begin) - begin <= 80);
    ++lines;
  }
  CHECK(lines <= 24);
  CHECK_THAT(RunCli(server, {"stat", "--all"}, {.out_is_terminal = true}).out,
             Catch::StartsWith("version         0.1.0\n"));
  CHECK(RunCli(server, {"stat", "items"}, {.out_is_terminal = true}).out == "200\n");
}

TEST_CASE("stat: a full kvd's screen is 24 lines at most") {
  FakeServer server;
  for (const char* name : {"version",
                           "pid",
                           "uptime_seconds",
                           "transports",
                           "memory_bytes",
                           "page_kind",
                           "free_bytes",
                           "largest_free_run_bytes",
                           "index_bytes",
                           "buckets",
                           "overflow_headers",
                           "heap_bytes",
                           "heap_used_bytes",
                           "items",
                           "user_bytes",
                           "local_items",
                           "expiring_items",
                           "expired_items",
                           "evicted_items",
                           "evict",
                           "no_space",
                           "sessions",
                           "sessions_max",
                           "sessions_total",
                           "refused",
                           "requests_put",
                           "requests_delete",
                           "requests_increment",
                           "requests_touch",
                           "requests_get",
                           "requests_flush",
                           "malformed",
                           "reported_gets",
                           "reported_hits",
                           "reported_reads",
                           "reported_torn_reads",
                           "reported_fallbacks",
                           "overwrites_in_place",
                           "overwrites_moved",
                           "pulled_bytes",
                           "cpu_user_us",
                           "cpu_system_us",
                           "pollers",
                           "poll_mode",
                           "poller_sleeps",
                           "poller_stalls",
                           "poller_stalled_us",
                           "rdma_device",
                           "rdma_listen",
                           "rdma_port_state",
                           "rdma_mtu_bytes",
                           "rdma_connections",
                           "rdma_completion_errors"}) {
    server.statistics.emplace_back(name, "18446744073709551615");
  }
  const std::string screen = RunCli(server, {"stat"}, {.out_is_terminal = true}).out;
  CHECK(std::count(screen.begin(), screen.end(), '\n') <= 24);
  CHECK(std::count(screen.begin(), screen.end(), '\n') > 15);
  CHECK_THAT(screen, !Catch::Contains(", ,"));
}

TEST_CASE("--stat: a line for each interval, with rates since the one before") {
  FakeServer server;
  kvd::test::FakeClock clock;
  uint64_t puts = 100;
  const auto set = [&] {
    server.statistics = {{"incarnation", "9"},
                         {"items", std::to_string(puts)},
                         {"memory_bytes", "67108864"},
                         {"free_bytes", "66060288"},
                         {"sessions", "3"},
                         {"requests_put", std::to_string(puts)},
                         {"requests_stat", "5"},
                         {"requests_forwarded", "1000000"},
                         {"reported_gets", std::to_string(puts)},
                         {"reported_reads", std::to_string(puts * 2)}};
  };
  set();
  const auto put_more = [&] {
    puts += 100;
    set();
  };
  CliOptions options;
  options.clock = &clock;
  options.on_pause = put_more;
  const CliResult result = RunCli(server, {"--stat", "-i", "2", "-c", "3"}, options);
  CHECK(result.exit == 0);
  CHECK(
      result.out ==
      "       items     memory  sessions   requests/s     puts/s    asked/s       gets/s      "
      "reads/s\n"
      "         100      1 MiB         3            -          -          -            -           "
      " "
      "-\n"
      "         200      1 MiB         3           50         50        0.0            -           "
      " "
      "-\n"
      "         300      1 MiB         3           50         50        0.0           50          "
      "100\n");
  CHECK(server.connections == 3);  // none is kept in between
  // In the order that redis-cli takes too, and by the command's own name.
  CHECK(RunCli(server, {"-i", "0.5", "--server=x", "--stat", "-c1"}, options).exit == 0);
  const CliResult json =
      RunCli(server, {"stat", "--rates", "-c2", "-i", "500ms", "-w", "json"}, options);
  CHECK_THAT(json.out, Catch::Contains("\"requests_per_second\":null"));
  CHECK_THAT(json.out, Catch::Contains("\"requests_per_second\":200,\"puts_per_second\":200"));
  CHECK(RunCli(server, {"stat", "--rates", "items"}).exit == 2);
}

TEST_CASE("--stat: what clients report every 2 seconds is a rate of each line, not bursts") {
  FakeServer server;
  kvd::test::FakeClock clock;
  int seconds = 0;
  const auto set = [&] {
    server.statistics = {{"incarnation", "9"},
                         {"reported_reads", std::to_string(seconds / 2 * 2000)}};
  };
  set();
  CliOptions options;
  options.clock = &clock;
  options.on_pause = [&] {
    ++seconds;
    set();
  };
  const CliResult result = RunCli(server, {"--stat", "-c", "9", "-w", "json"}, options);
  const auto lines_with = [&](std::string_view text) {
    size_t lines = 0;
    for (size_t at = 0; (at = result.out.find(text, at)) != std::string::npos; ++at) ++lines;
    return lines;
  };
  CHECK(lines_with("reads_per_second\":null}") == 4);
  CHECK(lines_with("reads_per_second\":1000}") == 5);  // each from the fourth second on
}

TEST_CASE("--stat: repeats its header, ends on Ctrl-C, and has no rates across a restart") {
  FakeServer server;
  kvd::test::FakeClock clock;
  server.statistics = {{"incarnation", "1"}, {"requests_put", "5"}};
  CliOptions options;
  options.clock = &clock;
  const CliResult many = RunCli(server, {"--stat", "-c", "41"}, options);
  size_t headers = 0;
  for (size_t at = many.out.find("items"); at != std::string::npos;
       at = many.out.find("items", at + 1)) {
    ++headers;
  }
  CHECK(headers == 3);
  options.on_pause = [&] { server.statistics = {{"incarnation", "2"}, {"requests_put", "9"}}; };
  const CliResult restarted = RunCli(server, {"--stat", "-c", "2"}, options);
  CHECK(std::count(restarted.out.begin(), restarted.out.end(), '-') == 10);
  options.interrupted = [] { return true; };
  CHECK(RunCli(server, {"--stat"}, options).exit == 130);
}

TEST_CASE("--stat: tells once that kvd is away, and goes on when it is back") {
  FakeServer server;
  kvd::test::FakeClock clock;
  server.statistics = {{"items", "1"}};
  int pauses = 0;
  CliOptions options;
  options.clock = &clock;
  options.on_pause = [&] {
    ++pauses;
    server.connect_error =
        pauses < 4 ? absl::UnavailableError("nobody there; wait") : absl::OkStatus();
  };
  const CliResult result = RunCli(server, {"--stat", "-c", "2"}, options);
  CHECK(result.exit == 0);
  CHECK(pauses == 4);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK_THAT(result.err, Catch::StartsWith("kvcli: stat: cannot connect: nobody there; wait"));
  CHECK(std::count(result.out.begin(), result.out.end(), '\n') == 3);
  server.connect_error = absl::UnavailableError("nobody there; wait");
  CHECK(RunCli(server, {"--stat"}, options).exit == 3);
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
