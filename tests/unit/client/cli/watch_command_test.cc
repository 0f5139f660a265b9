#include <functional>
#include <string>
#include <vector>

#include "client/cli/change_watch.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

// Runs kvcli; in each pause the next of `steps` happens, and Ctrl-C after the last one.
CliResult Watch(FakeServer& server, const std::vector<std::string>& arguments,
                const std::vector<std::function<void()>>& steps) {
  size_t next = 0;
  CliOptions options;
  options.on_pause = [&] {
    if (next < steps.size()) steps[next]();
    ++next;
  };
  options.interrupted = [&] { return next > steps.size(); };
  return RunCli(server, arguments, options);
}

TEST_CASE("watch: a key's changes from the first look on, until Ctrl-C") {
  FakeServer server;
  server.Insert("a", "before");
  server.Insert("other", "x");
  const CliResult result =
      Watch(server, {"watch", "a", "b"},
            {[&] { server.Insert("a", "1"); }, [] {}, [&] { server.Insert("other", "y"); },
             [&] { server.Insert("b", "2"); }, [&] { server.items.erase("a"); },
             [&] { server.Insert("a", "3"); }});
  CHECK(result.exit == 130);
  CHECK(result.out == "PUT\na\n1\nPUT\nb\n2\nDELETE\na\n\nPUT\na\n3\n");
  CHECK(result.err.empty());
}

TEST_CASE("watch: several changes between two looks are one, the last") {
  FakeServer server;
  const CliResult result = Watch(server, {"watch", "a"},
                                 {[&] {
                                    server.Insert("a", "1");
                                    server.Insert("a", "2");
                                  },
                                  [&] {
                                    server.items.erase("a");
                                    server.Insert("a", "2");
                                  },
                                  [&] {
                                    server.Insert("b", "3");
                                    server.items.erase("b");
                                  }});
  CHECK(result.out == "PUT\na\n2\nPUT\na\n2\n");
}

TEST_CASE("watch: an item that expires has gone") {
  FakeServer server;
  server.Insert("a", "1");
  server.items["a"].second.expiry_unix_us = server.now_unix_us + 1;
  CHECK(Watch(server, {"watch", "a"}, {[&] { server.now_unix_us += 2; }}).out == "DELETE\na\n\n");
}

TEST_CASE("watch: JSON lines with versions, hexadecimal keys and values, and --count") {
  FakeServer server;
  server.Insert("a", "1");
  const std::vector<std::function<void()>> steps = {[&] { server.Insert("a", "2"); },
                                                    [&] { server.items.erase("a"); },
                                                    [&] { server.Insert("a", "never seen"); }};
  CliResult result = Watch(server, {"watch", "a", "-w", "json", "-c2"}, steps);
  CHECK(result.exit == 0);
  CHECK(result.out ==
        "{\"event\":\"PUT\",\"key\":\"a\",\"value\":\"2\",\"version\":2}\n"
        "{\"event\":\"DELETE\",\"key\":\"a\"}\n");
  result = Watch(server, {"watch", "--hex", "6b"}, {[&] { server.Insert("k", "\x01\x02"); }});
  CHECK(result.out == "PUT\n6b\n0102\n");
}

TEST_CASE("watch: everything that begins with a prefix") {
  FakeServer server;
  server.Insert("user:1", "a");
  server.Insert("user:2", "b");
  server.Insert("job", "c");
  const CliResult result =
      Watch(server, {"watch", "--prefix=user:"},
            {[&] { server.Insert("user:3", "n"); }, [&] { server.Insert("job", "d"); },
             [&] { server.items.erase("user:1"); }, [&] { server.Insert("user:2", "e"); }});
  CHECK(result.exit == 130);
  CHECK(result.out == "PUT\nuser:3\nn\nDELETE\nuser:1\n\nPUT\nuser:2\ne\n");
  CHECK(Watch(server, {"watch", "--prefix="}, {[&] { server.Insert("z", "1"); }}).out ==
        "PUT\nz\n1\n");
}

TEST_CASE("watch: what a scan misses has not gone, as a GET tells") {
  FakeServer server;
  server.Insert("k", "1");
  const CliResult result =
      Watch(server, {"watch", "--prefix=k"},
            {[&] { server.unseen_by_scans = {"k"}; }, [&] { server.Insert("k", "2"); },
             [&] { server.unseen_by_scans.clear(); }});
  CHECK(result.out == "PUT\nk\n2\n");
}

TEST_CASE("watch: what is wrong is said, and nothing is lost by a look that failed") {
  FakeServer server;
  CHECK(RunCli(server, {"watch"}).exit == 2);
  CHECK(RunCli(server, {"watch", "a", "--prefix=b"}).err ==
        "kvcli: watch: both keys and --prefix; give one of them\n");
  server.operation_error = absl::UnavailableError("gone; wait");
  CHECK(RunCli(server, {"watch", "a"}).exit == 3);
  server.operation_error = absl::OkStatus();

  FakeStore store(server);
  ChangeWatch watch(std::vector<std::string>{"a"});
  REQUIRE(watch.Look(store).ok());
  server.Insert("a", "1");
  server.operation_error = absl::UnavailableError("away");
  CHECK_FALSE(watch.Look(store).ok());
  server.operation_error = absl::OkStatus();
  const auto changes = watch.Look(store);
  REQUIRE(changes.ok());
  REQUIRE(changes->size() == 1);
  CHECK(changes->front().value == "1");
}

}  // namespace
}  // namespace kvd::cli::test
