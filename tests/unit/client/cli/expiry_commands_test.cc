#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

TEST_CASE("touch: sets the expiry, or takes it away") {
  FakeServer server;
  server.Insert("k", "v");
  CHECK(RunCli(server, {"touch", "k", "--ttl=2h"}).out == "OK\n");
  CHECK(server.items["k"].second.expiry_unix_us == server.now_unix_us + 7'200'000'000);
  CHECK(RunCli(server, {"touch", "k", "-w", "json"}).out == "{\"key\":\"k\",\"version\":3}\n");
  CHECK(server.items["k"].second.expiry_unix_us == 0);
  CHECK(server.items["k"].first == "v");
  CHECK(RunCli(server, {"touch", "none"}).exit == 1);
  CHECK(RunCli(server, {"touch", "k", "--if=version:1"}).exit == 1);
}

TEST_CASE("touch: a moment that has passed is told of, as for put and incr; one to come is not") {
  FakeServer server;
  server.Insert("k", "v");
  const std::string passed =
      ": --expire_at has passed, the item has expired already; kvd's clock says "
      "2027-01-15T08:00:00Z\n";
  CliResult result = RunCli(server, {"touch", "k", "--expire_at=1000000000"});
  CHECK(result.exit == 0);
  CHECK(result.err == "kvcli: touch k" + passed);
  result = RunCli(server, {"put", "k", "v", "--expire_at=1000000000"});
  CHECK(result.out == "OK\n");
  CHECK(result.err == "kvcli: put k" + passed);
  CHECK(RunCli(server, {"incr", "n", "--expire_at=1000000000"}).err == "kvcli: incr n" + passed);
  CHECK(RunCli(server, {"put", "k", "v", "--expire_at=1800000001"}).err.empty());
  CHECK(RunCli(server, {"put", "k", "v", "--ttl=1"}).err.empty());
}

TEST_CASE("ttl: whole seconds, rounded up; -1 never; 1 not there") {
  FakeServer server;
  server.Insert("k", "v");
  CHECK(RunCli(server, {"ttl", "k"}).out == "-1\n");
  CHECK(RunCli(server, {"ttl", "k", "-w", "json"}).out ==
        "{\"key\":\"k\",\"ttl_seconds\":null,\"version\":1}\n");
  server.items["k"].second.expiry_unix_us = server.now_unix_us + 1;
  CHECK(RunCli(server, {"ttl", "k"}).out == "1\n");
  server.items["k"].second.expiry_unix_us = server.now_unix_us + 59'250'000;
  CHECK(RunCli(server, {"ttl", "k"}).out == "60\n");
  CHECK(
      RunCli(server, {"ttl", "k", "-w", "json"}).out ==
      "{\"key\":\"k\",\"ttl_seconds\":59.25,\"expiry_unix_us\":1800000059250000,\"version\":1}\n");
  CHECK_THAT(RunCli(server, {"ttl", "k", "-w", "table"}).out,
             Catch::Contains("| k   |        59.25 | 2027-01-15T08:00:59.250000Z |"));
  server.items["k"].second.expiry_unix_us = server.now_unix_us;
  const CliResult result = RunCli(server, {"ttl", "k"});
  CHECK(result.exit == 1);
  CHECK(result.out.empty());
}

TEST_CASE("touch: what it means that there is no item") {
  FakeServer server;
  const CliResult result = RunCli(server, {"touch", "k", "--ttl=60"});
  CHECK(result.exit == 1);
  CHECK(result.err ==
        "kvcli: touch k: not found, so there is nothing that could expire; 'kvcli put KEY VALUE "
        "--ttl=TIME' stores an item that does\n");
}

}  // namespace
}  // namespace kvd::cli::test
