#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

FakeServer Some() {
  FakeServer server;
  server.Insert("small", "abc");
  server.Insert("edge", std::string(64, 'x'));
  server.Insert("over", std::string(65, 'x'));
  server.Insert("large", std::string(100'000, 'x'));
  server.items["small"].second.expiry_unix_us = server.now_unix_us + 1;
  return server;
}

TEST_CASE("bigkeys: counts by size class, with the largest of each") {
  FakeServer server = Some();
  const CliResult result = RunCli(server, {"bigkeys"});
  CHECK(result.exit == 0);
  CHECK(result.out ==
        "+------------+-------+------+----------+----------+---------+\n"
        "| VALUE SIZE | ITEMS | %    | AVERAGE  | LARGEST  | ITS KEY |\n"
        "+------------+-------+------+----------+----------+---------+\n"
        "| <= 64 B    |     2 | 50.0 | 34 B     | 64 B     | edge    |\n"
        "| <= 1 KiB   |     1 | 25.0 | 65 B     | 65 B     | over    |\n"
        "| <= 256 KiB |     1 | 25.0 | 97.7 KiB | 97.7 KiB | large   |\n"
        "+------------+-------+------+----------+----------+---------+\n"
        "4 items, 1 of them expires\n"
        "keys: 18 B, average 5 B\n"
        "values: 97.8 KiB, average 24.4 KiB\n");
  CHECK(RunCli(server, {"--bigkeys"}).out == result.out);
  CHECK(RunCli(server, {"-w", "json", "--bigkeys", "--prefix=o"}).out ==
        "{\"items\":1,\"expiring\":0,\"key_bytes\":4,\"value_bytes\":65,\"classes\":[{\"bytes_"
        "max\":1024,"
        "\"items\":1,\"value_bytes\":65,\"largest_bytes\":65,\"largest_key\":\"over\"}]}\n");
}

TEST_CASE("bigkeys: a key of that name, and a store that is empty") {
  FakeServer server;
  CHECK(RunCli(server, {"put", "--", "--bigkeys", "v"}).exit == 0);
  CHECK(server.items.contains("--bigkeys"));
  server.items.clear();
  CHECK_THAT(RunCli(server, {"bigkeys"}).out, Catch::Contains("0 items"));
  CHECK_THAT(RunCli(server, {"bigkeys", "-w", "json"}).out, Catch::Contains("\"classes\":[]"));
}

TEST_CASE("bigkeys: Ctrl-C and errors show what was counted") {
  FakeServer server = Some();
  const CliResult interrupted = RunCli(server, {"bigkeys"}, {.interrupted = [] { return true; }});
  CHECK(interrupted.exit == 130);
  CHECK_THAT(interrupted.out, Catch::Contains("0 items"));
  server.operation_error = absl::UnavailableError("gone; wait");
  const CliResult result = RunCli(server, {"bigkeys"});
  CHECK(result.exit == 3);
  CHECK_THAT(result.out, Catch::Contains("4 items"));
}

}  // namespace
}  // namespace kvd::cli::test
