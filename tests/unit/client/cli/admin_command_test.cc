#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

FakeServer TwoSessions() {
  FakeServer server;
  server.sessions = {{{"session", "1"}, {"name", "loader"}, {"pid", "42"}, {"role", "read"}},
                     {{"session", "2"}, {"name", "k\x1b"}, {"role", "admin"}}};
  return server;
}

TEST_CASE("admin sessions: a line each, a table, or JSON; nothing that steers a terminal") {
  FakeServer server = TwoSessions();
  CHECK(RunCli(server, {"admin", "sessions"}).out ==
        "session=1 name=loader pid=42 role=read\nsession=2 name=k\\x1b role=admin\n");
  CHECK(RunCli(server, {"admin", "sessions", "-w", "json"}).out ==
        "{\"session\":1,\"name\":\"loader\",\"pid\":42,\"role\":\"read\"}\n"
        "{\"session\":2,\"name\":\"k\\\\x1b\",\"role\":\"admin\"}\n");
  const std::string table = RunCli(server, {"admin", "sessions", "-w", "table"}).out;
  CHECK_THAT(table, Catch::Contains("SESSION") && Catch::Contains("PID") && Catch::Contains("42"));
  server.sessions.clear();
  CHECK(RunCli(server, {"admin", "sessions"}).out.empty());
}

TEST_CASE(
    "admin sessions: a table has times and sizes for people, and no columns of nothing reported") {
  FakeServer server;
  server.sessions = {{{"session", "1"},
                      {"since_unix_us", "1000000000123456"},
                      {"received_bytes", "3221225472"},
                      {"reported_gets", "7"},
                      {"reported_misses", "0"}},
                     {{"session", "2"},
                      {"since_unix_us", "18446744073709551615"},
                      {"received_bytes", "many"},
                      {"reported_gets", "0"},
                      {"reported_misses", "0"}}};
  const std::string table = RunCli(server, {"admin", "sessions", "-w", "table"}).out;
  CHECK_THAT(table, Catch::Contains("| SESSION | SINCE ") && Catch::Contains("| REPORTED_GETS |"));
  CHECK_THAT(table, Catch::Contains("|       1 | 2001-09-09T01:46:40Z | 3 GiB ") &&
                        Catch::Contains("RECEIVED_BYTES"));
  // What cannot be is shown as it came.
  CHECK_THAT(table, Catch::Contains("SINCE_UNIX_US") && Catch::Contains("1844674407") &&
                        Catch::Contains("many"));
  CHECK_THAT(table, !Catch::Contains("MISSES"));
  const std::string lines = RunCli(server, {"admin", "sessions"}).out;
  CHECK_THAT(lines, Catch::Contains("since_unix_us=1000000000123456 received_bytes=3221225472") &&
                        Catch::Contains("reported_misses=0"));
  CHECK_THAT(RunCli(server, {"admin", "sessions", "-w", "json"}).out,
             Catch::Contains("\"since_unix_us\":1000000000123456,") &&
                 Catch::Contains("\"since_unix_us\":\"18446744073709551615\"") &&
                 Catch::Contains("\"received_bytes\":\"many\"") &&
                 Catch::Contains("\"reported_misses\":0}"));
  // A name is a name, whatever it is made of.
  server.sessions = {{{"client", "0000000000000012"}, {"name", "7"}, {"key", "8"}}};
  CHECK(RunCli(server, {"admin", "sessions", "-w", "json"}).out ==
        "{\"client\":\"0000000000000012\",\"name\":\"7\",\"key\":\"8\"}\n");
}

TEST_CASE("admin kick: says how many sessions ended; that there was none is exit status 1") {
  FakeServer server = TwoSessions();
  CliResult result = RunCli(server, {"admin", "kick", "key:app"});
  CHECK(result.exit == 0);
  CHECK(result.out == "2\n");
  CHECK(server.kicked == "key:app");
  CHECK(RunCli(server, {"admin", "kick", "1", "-w", "json"}).out == "{\"ended\":2}\n");
  server.sessions.clear();
  result = RunCli(server, {"admin", "kick", "nobody"});
  CHECK(result.exit == 1);
  CHECK(result.out == "0\n");
  CHECK_THAT(result.err, Catch::Contains("nobody: there is no such session; 'kvcli admin sessions'"));
}

TEST_CASE("admin: what it does not know is a usage error; who may not is refused") {
  FakeServer server = TwoSessions();
  for (const std::vector<std::string>& words : {std::vector<std::string>{"admin", "session"},
                                                {"admin", "kick"},
                                                {"admin", "sessions", "1"}}) {
    const CliResult result = RunCli(server, words);
    CHECK(result.exit == 2);
    CHECK_THAT(result.err, Catch::Contains("'admin sessions' or 'admin kick CLIENT'"));
  }
  CHECK(server.connections == 0);
  server.operation_error = absl::PermissionDeniedError(
      "not permitted: this is for the role admin; use a key of that role");
  const CliResult result = RunCli(server, {"admin", "sessions"});
  CHECK(result.exit == 5);
  CHECK_THAT(result.err, Catch::Contains("use a key of that role"));
}

TEST_CASE("Flags: the key file and key name of a command are those that it connects with") {
  FakeServer server;
  RunCli(server, {"get", "k", "--key_file=/etc/kvd/app.keys", "--key_name=app"});
  REQUIRE(server.keys.size() == 1);
  CHECK(server.keys[0] == KeyChoice{"/etc/kvd/app.keys", "app"});
}

}  // namespace
}  // namespace kvd::cli::test
