#include <string>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

FakeServer ThreeKeys() {
  FakeServer server;
  for (const char* key : {"a:1", "a:2", "b"}) server.Insert(key, "");
  return server;
}

TEST_CASE("flush: --yes deletes, by prefix or all") {
  FakeServer server = ThreeKeys();
  CHECK(RunCli(server, {"flush", "--prefix=a:", "--yes"}).out == "2\n");
  CHECK(server.items.size() == 1);
  CHECK(RunCli(server, {"flush", "-y", "-w", "json"}).out == "{\"deleted\":1}\n");
  CHECK(server.items.empty());
  CHECK(RunCli(server, {"flush", "-y"}).exit == 0);
}

TEST_CASE("flush: a pattern deletes nothing, and is told of") {
  FakeServer server = ThreeKeys();
  const CliResult result = RunCli(server, {"flush", "--prefix=a:?", "--yes"});
  CHECK(result.out == "0\n");
  CHECK(
      result.err ==
      "kvcli: flush: no key begins with a:?, which is taken as it is; did you mean --prefix=a:?\n");
}

TEST_CASE("flush: --yes is no prefix, unless it is written as one") {
  FakeServer server = ThreeKeys();
  server.Insert("--yes", "");
  const CliResult result = RunCli(server, {"flush", "--prefix", "--yes"});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: flush: --prefix needs a value, and --yes looks like a flag; give --prefix=P, or "
        "--prefix=--yes if that is the value\n");
  CHECK(server.items.size() == 4);
  CHECK(RunCli(server, {"flush", "--prefix=--yes", "--yes"}).out == "1\n");
}

TEST_CASE("flush: without --yes nothing is deleted where nobody can be asked") {
  FakeServer server = ThreeKeys();
  CliResult result = RunCli(server, {"flush"}, {.in = "y\n"});
  CHECK(result.exit == 2);
  CHECK(result.err == "kvcli: flush: deletes all items; add --yes if that is meant\n");
  result = RunCli(server, {"flush"}, {.in = "y\n", .in_is_terminal = true});
  CHECK(result.exit == 2);
  CHECK(RunCli(server, {}, {.in = "flush\ny\n"}).exit == 2);
  CHECK(server.connections == 0);
  CHECK(server.items.size() == 3);
}

TEST_CASE("flush: asks on a terminal, and takes only a yes for one") {
  FakeServer server = ThreeKeys();
  for (const std::string answer : {"", "\n", "n\n", "yesterday\n"}) {
    const CliResult result =
        RunCli(server, {"flush"}, {.in = answer, .in_is_terminal = true, .err_is_terminal = true});
    CHECK(result.exit == 2);
    CHECK_THAT(result.err, Catch::StartsWith("Delete all items of shm:/run/fake.sock? [y/N] "));
    CHECK(server.items.size() == 3);
  }
  const CliResult result = RunCli(server, {"flush", "--prefix=a:"},
                                  {.in = "y\n", .in_is_terminal = true, .err_is_terminal = true});
  CHECK(result.exit == 0);
  CHECK(result.out == "2\n");
  CHECK_THAT(result.err, Catch::Contains("all items whose keys begin with"));
}

TEST_CASE("flush: a server that does not know it") {
  FakeServer server;
  server.operation_error = absl::UnimplementedError("the server does not know this request");
  const CliResult result = RunCli(server, {"flush", "-y"});
  CHECK(result.exit == 5);
  CHECK(result.err ==
        "kvcli: flush: the server does not know this request; use a kvcli and a kvd of the same "
        "version\n");
}

}  // namespace
}  // namespace kvd::cli::test
