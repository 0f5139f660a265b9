#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

FakeServer TwoSlow() {
  FakeServer server;
  server.slow_requests = {{{"at_unix_us", "1700000000000001"},
                           {"operation", "put"},
                           {"session", "7"},
                           {"name", "12\x1b"},
                           {"us", "12345"},
                           {"phase", "evicting"},
                           {"of_a_later_kvd", "9"}},
                          {{"at_unix_us", "1600000000000000"}, {"operation", "get"}, {"us", "9"}}};
  return server;
}

TEST_CASE(
    "slowlog: one table, the newest first; JSON with numbers; nothing that steers a terminal") {
  FakeServer server = TwoSlow();
  const std::string table = RunCli(server, {"slowlog"}).out;
  CHECK_THAT(table, Catch::Contains("WHEN") && Catch::Contains("EVICTING") &&
                        Catch::Contains("2023-11-14T22:13:20.000001Z") &&
                        Catch::Contains("2020-09-13T12:26:40Z") && Catch::Contains("12\\x1b"));
  CHECK(table.find("put") < table.find("get"));
  CHECK(RunCli(server, {"slowlog", "-w", "table"}).out == table);
  CHECK(
      RunCli(server, {"slowlog", "1", "-w", "json"}).out ==
      "{\"at_unix_us\":1700000000000001,\"operation\":\"put\",\"session\":7,\"name\":\"12\\\\x1b\","
      "\"us\":12345,\"phase\":\"evicting\",\"of_a_later_kvd\":9}\n");
  server.slow_requests.clear();
  CHECK(RunCli(server, {"slowlog"}).out.empty());
}

TEST_CASE("slowlog: what is no number is a usage error; who may not is refused") {
  FakeServer server = TwoSlow();
  CHECK(RunCli(server, {"slowlog", "some"}).exit == 2);
  CHECK(RunCli(server, {"slowlog", "-1"}).exit == 2);
  CHECK(RunCli(server, {"slowlog", "1", "2"}).exit == 2);
  CHECK(server.connections == 0);
  server.operation_error = absl::PermissionDeniedError("not permitted");
  CHECK(RunCli(server, {"slowlog"}).exit == 5);
}

}  // namespace
}  // namespace kvd::cli::test
