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
  CliResult result = RunCli(server, {"incr", "text"});
  CHECK(result.exit == 5);
  CHECK(result.err ==
        "kvcli: incr text: the value is not a signed 64-bit number in decimal, and is unchanged; "
        "'kvcli get' shows it, 'kvcli put' replaces it by a number\n");
  CHECK(RunCli(server, {"decr", "text"}).exit == 5);
  server.operation_error = absl::InvalidArgumentError("keys have 1 to 4096 bytes");
  CHECK(RunCli(server, {"incr", ""}).exit == 2);
  server.operation_error = absl::OkStatus();
  result = RunCli(server, {"incr", "full"});
  CHECK(result.exit == 5);
  CHECK(result.err ==
        "kvcli: incr full: the sum is not within -9223372036854775808 and 9223372036854775807, so "
        "the value is unchanged; count by less, or put another number\n");
  for (const std::string wrong : {"", "x", "1.5", "1x", "9223372036854775808"}) {
    CHECK(RunCli(server, {"incr", "n", wrong}).exit == 2);
  }
  CHECK_FALSE(server.items.contains("n"));
}

TEST_CASE("decr: its range and its limits are those of what is taken off") {
  FakeServer server;
  CliResult result = RunCli(server, {"decr", "n", "-9223372036854775808"});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: decr n: -9223372036854775808 is nothing to count by; give a whole number from "
        "-9223372036854775807 to 9223372036854775807\n");
  CHECK_THAT(RunCli(server, {"incr", "n", "x"}).err,
             Catch::EndsWith("from -9223372036854775808 to 9223372036854775807\n"));
  server.Insert("low", "-9223372036854775808");
  result = RunCli(server, {"decr", "low"});
  CHECK(result.exit == 5);
  CHECK_THAT(result.err, Catch::StartsWith("kvcli: decr low: the difference is not within"));
  CHECK(RunCli(server, {"decr", "low", "-9223372036854775807"}).out == "-1\n");
}

TEST_CASE("incr and decr: what --if needs and is not there") {
  FakeServer server;
  for (const std::string command : {"incr", "decr"}) {
    const CliResult result = RunCli(server, {command, "n", "--if=present"});
    CHECK(result.exit == 1);
    CHECK(result.err == "kvcli: " + command +
                            " n: not found, and --if asks for an item, so nothing was counted; "
                            "leave --if out to count from 0\n");
  }
}

}  // namespace
}  // namespace kvd::cli::test
