#include <cerrno>
#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

FakeServer ThreeKeys() {
  FakeServer server;
  server.Insert("user:1", "one");
  server.Insert("user:2", "");
  server.Insert("x\ny", "v");
  return server;
}

TEST_CASE("scan: a key a line, by prefix, up to a limit") {
  FakeServer server = ThreeKeys();
  CHECK(RunCli(server, {"scan"}).out == "user:1\nuser:2\nx\ny\n");
  CHECK(RunCli(server, {"scan", "--prefix=user:"}).out == "user:1\nuser:2\n");
  CHECK(RunCli(server, {"scan", "--limit=1"}).out == "user:1\n");
  CHECK(RunCli(server, {"scan", "--prefix=none"}).exit == 0);
  CHECK(RunCli(server, {"scan", "--hex", "--prefix=78"}).out == "780a79\n");
  CHECK(RunCli(server, {"scan", "--prefix=x"}, {.out_is_terminal = true}).out == "x\\ny\n");
}

TEST_CASE("scan: JSON lines and table") {
  FakeServer server = ThreeKeys();
  CHECK(RunCli(server, {"scan", "-w", "json", "--limit=1"}).out ==
        "{\"key\":\"user:1\",\"value_bytes\":3,\"version\":1}\n");
  CHECK(RunCli(server, {"scan", "-w", "table", "--prefix=x"}).out ==
        "+------+-------------+---------+\n"
        "| KEY  | VALUE BYTES | VERSION |\n"
        "+------+-------------+---------+\n"
        "| x\\ny |           1 |       3 |\n"
        "+------+-------------+---------+\n");
}

TEST_CASE("scan: an error of the store, a Ctrl-C, and a reader that is gone") {
  FakeServer server = ThreeKeys();
  server.operation_error = absl::UnavailableError("gone; wait");
  const CliResult result = RunCli(server, {"scan"});
  CHECK(result.exit == 3);
  CHECK(result.err == "kvcli: scan: gone; wait\n");
  server.operation_error = absl::OkStatus();
  CHECK(RunCli(server, {"scan"}, {.interrupted = [] { return true; }}).exit == 130);
  const CliResult broken = RunCli(server, {"scan"}, {.out_bytes_max = 8, .out_errno = EPIPE});
  CHECK(broken.exit == 141);
  CHECK(broken.err.empty());
}

}  // namespace
}  // namespace kvd::cli::test
