#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

TEST_CASE("incr and decr: count, from 0 where there is nothing") {
  FakeServer server;
  CHECK(RunCli(server, {"incr", "n"}).out == "1\n");
  CHECK(RunCli(server, {"incr", "n", "41"}).out == "42\n");
  CHECK(RunCli(server, {"incr", "n", "-2"}).out == "40\n");
  CHECK(RunCli(server, {"decr", "n", "50"}).out == "-10\n");
  CHECK(RunCli(server, {"decr", "n"}).out == "-11\n");
  CHECK(server.items.at("n").first == "-11");
  CHECK(RunCli(server, {"decr", "none", "--if=present"}).exit == 1);
}

TEST_CASE("incr: JSON and table; what a double cannot hold is a string") {
  FakeServer server;
  CHECK(RunCli(server, {"incr", "n", "9007199254740991", "-w", "json"}).out ==
        "{\"key\":\"n\",\"number\":9007199254740991,\"version\":1}\n");
  CHECK(RunCli(server, {"incr", "n", "-w", "json"}).out ==
        "{\"key\":\"n\",\"number\":\"9007199254740992\",\"version\":2}\n");
  CHECK(RunCli(server, {"decr", "m", "5", "-w", "table"}).out ==
        "+-----+--------+---------+\n"
        "| KEY | NUMBER | VERSION |\n"
        "+-----+--------+---------+\n"
        "| m   |     -5 |       3 |\n"
        "+-----+--------+---------+\n");
}

TEST_CASE("incr: keeps the expiry unless it is given one") {
  FakeServer server;
  RunCli(server, {"incr", "n", "--ttl=60"});
  RunCli(server, {"incr", "n"});
  CHECK(server.items["n"].second.expiry_unix_us == server.now_unix_us + 60'000'000);
}

TEST_CASE("incr: what is no number, too much, and no DELTA") {
  FakeServer server;
  server.Insert("text", "x");
  server.Insert("full", "9223372036854775807");
  CHECK(RunCli(server, {"incr", "text"}).exit == 2);
  CliResult result = RunCli(server, {"incr", "full"});
  CHECK(result.exit == 5);
  CHECK(result.err == "kvcli: incr full: the sum does not fit; the value is unchanged\n");
  for (const std::string wrong : {"", "x", "1.5", "1x", "9223372036854775808"}) {
    CHECK(RunCli(server, {"incr", "n", wrong}).exit == 2);
  }
  CHECK(RunCli(server, {"decr", "n", "-9223372036854775808"}).exit == 2);
  CHECK_FALSE(server.items.contains("n"));
}

}  // namespace
}  // namespace kvd::cli::test
