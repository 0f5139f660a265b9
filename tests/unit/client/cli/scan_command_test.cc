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

TEST_CASE("scan: a pattern that finds nothing is told of; one that is a prefix is not") {
  FakeServer server = ThreeKeys();
  CliResult result = RunCli(server, {"scan", "--prefix=user:*"});
  CHECK(result.exit == 0);
  CHECK(result.out.empty());
  CHECK(result.err ==
        "kvcli: scan: no key begins with user:*, which is taken as it is; did you mean "
        "--prefix=user:?\n");
  CHECK(RunCli(server, {"scan", "--prefix=*"}).err ==
        "kvcli: scan: no key begins with *, which is taken as it is; leave --prefix out for all "
        "keys\n");
  CHECK(RunCli(server, {"scan", "--prefix=none"}).err.empty());
  CHECK(RunCli(server, {"scan", "--hex", "--prefix=2a"}).err.empty());
  server.Insert("user:*", "v");
  result = RunCli(server, {"scan", "--prefix=user:*"});
  CHECK(result.out == "user:*\n");
  CHECK(result.err.empty());
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

TEST_CASE("scan: in parts, which together are everything once") {
  FakeServer server;
  for (const char* key : {"a", "b", "c", "d", "e"}) server.Insert(key, "");
  // Its buckets have two items each: parts end behind a bucket.
  CliResult result = RunCli(server, {"scan", "--cursor=", "--limit=1"});
  CHECK(result.out == "a\nb\n");
  CHECK(result.err == "kvcli: scan: there is more; go on with --cursor=c\n");
  result = RunCli(server, {"scan", "--cursor=c", "--limit=2", "-w", "json"});
  CHECK_THAT(result.out, Catch::EndsWith("{\"cursor\":\"e\"}\n"));
  result = RunCli(server, {"scan", "--cursor=e", "--limit=2"});
  CHECK(result.out == "e\n");
  CHECK(result.err == "kvcli: scan: this was the last part\n");
  CHECK(RunCli(server, {"scan", "--cursor=e", "-w", "json"}).out ==
        "{\"key\":\"e\",\"value_bytes\":0,\"version\":5}\n{\"cursor\":\"\"}\n");
  CHECK(RunCli(server, {"scan", "--limit=1"}).out == "a\n");
  result = RunCli(server, {"scan", "--cursor=old"});
  CHECK(result.exit == 5);
  CHECK(result.err == "kvcli: scan: of an earlier run of kvd; --cursor= begins one\n");
  result = RunCli(server, {"scan", "--cursor=bad"});
  CHECK(result.exit == 2);
  CHECK(result.err == "kvcli: scan: no cursor; see 'kvcli help scan'\n");
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
