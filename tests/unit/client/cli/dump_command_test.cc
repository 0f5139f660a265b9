#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

FakeServer TwoItems() {
  FakeServer server;
  server.Insert("a", "1");
  server.Insert("b\t", "\xff");
  return server;
}

constexpr char kJsonLines[] =
    "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\\t\",\"value_base64\":\"/w==\"}\n";
constexpr char kTsv[] = "a\t1\nb\\t\t\\xff\n";

TEST_CASE("dump: JSON lines to standard output, and a summary beside them") {
  FakeServer server = TwoItems();
  CliResult result = RunCli(server, {"dump"});
  CHECK(result.exit == 0);
  CHECK(result.out == kJsonLines);
  CHECK(result.err == "kvcli: dump: 2 items (5 B) in 0.00 s\n");
  CHECK(RunCli(server, {"dump", "-"}).out == kJsonLines);
  result = RunCli(server, {"dump", "--format=tsv", "--prefix=b"});
  CHECK(result.out == "b\\t\t\\xff\n");
  CHECK(result.err == "kvcli: dump: 1 item (3 B) in 0.00 s\n");
}

TEST_CASE("dump: expiry and user flags go along") {
  FakeServer server;
  server.Insert("a", "1");
  server.items["a"].second.expiry_unix_us = 1'800'000'000'000'001;
  server.items["a"].second.user_flags = 9;
  CHECK(RunCli(server, {"dump"}).out ==
        "{\"key\":\"a\",\"value\":\"1\",\"user_flags\":9,\"expiry_unix_us\":1800000000000001}\n");
  CHECK(RunCli(server, {"dump", "--format=tsv"}).out ==
        "a\t1\texpiry_unix_us=1800000000000001\tuser_flags=9\n");
}

TEST_CASE("dump: to a file, in the format that its name tells") {
  const kvd::test::TempDir directory;
  FakeServer server = TwoItems();
  const CliResult result = RunCli(server, {"dump", directory.Join("x.tsv")});
  CHECK(result.exit == 0);
  CHECK(result.out.empty());
  CHECK(Contents(directory.Join("x.tsv")) == kTsv);
  CHECK(RunCli(server, {"dump", directory.Join("x")}).exit == 0);
  CHECK(Contents(directory.Join("x")) == kJsonLines);
}

TEST_CASE("dump: a name that promises compression is refused") {
  FakeServer server = TwoItems();
  const kvd::test::TempDir directory;
  const CliResult result = RunCli(server, {"dump", directory.Join("x.jsonl.gz")});
  CHECK(result.exit == 2);
  CHECK_THAT(result.err, Catch::Contains("kvcli dump | gzip > "));
}

TEST_CASE("dump: an error or a Ctrl-C leaves the file as it was") {
  const kvd::test::TempDir directory;
  const std::string path = directory.Join("x");
  std::ofstream(path) << "old";
  FakeServer server = TwoItems();
  server.operation_error = absl::UnavailableError("gone; wait");
  CliResult result = RunCli(server, {"dump", path});
  CHECK(result.exit == 3);
  CHECK(result.err == "kvcli: dump " + path + ": gone; wait\n");
  CHECK(Contents(path) == "old");
  server.operation_error = absl::OkStatus();
  int calls = 0;
  result = RunCli(server, {"dump", path}, {.interrupted = [&calls] { return ++calls > 1; }});
  CHECK(result.exit == 130);
  CHECK(result.err == "kvcli: dump " + path +
                          ": interrupted after 1 item (2 B) in 0.00 s; the file was not changed\n");
  CHECK(Contents(path) == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("dump: says what it replaces, and never replaces something by nothing") {
  const kvd::test::TempDir directory;
  const std::string path = directory.Join("x");
  FakeServer empty;
  CHECK(RunCli(empty, {"dump", path}).exit == 0);
  FakeServer server = TwoItems();
  CHECK(RunCli(server, {"dump", path}).err ==
        "kvcli: dump " + path + ": 2 items (5 B) in 0.00 s\n");
  CliResult result = RunCli(server, {"dump", path, "--format=tsv"});
  CHECK(result.exit == 0);
  CHECK(result.err ==
        "kvcli: dump " + path + ": 2 items (5 B) in 0.00 s; in the place of a file of 60 B\n");
  // A kvd that was started anew; a prefix that nothing has.
  for (auto& [of, prefix] : {std::pair<FakeServer*, std::string>{&empty, ""}, {&server, "none"}}) {
    result = RunCli(*of, {"dump", path, "--prefix=" + prefix});
    CHECK(result.exit == 1);
    CHECK_THAT(result.err, Catch::Contains("there is no item to write, and the file has 13 B of "
                                           "before; it was not changed; remove it first"));
    CHECK(Contents(path) == kTsv);
  }
}

TEST_CASE("dump: a full disk is an error, a reader that is gone is none to speak of") {
  FakeServer server = TwoItems();
  CliResult result = RunCli(server, {"dump"}, {.out_bytes_max = 30, .out_errno = ENOSPC});
  CHECK(result.exit == 7);
  CHECK(result.err ==
        "kvcli: dump: cannot write standard output: No space left on device (errno 28); free some "
        "space or use another file\n");
  result = RunCli(server, {"dump"}, {.out_bytes_max = 30, .out_errno = EPIPE});
  CHECK(result.exit == 141);
  CHECK(result.err.empty());
  result = RunCli(server, {"dump", "/dev/full"});
  CHECK(result.exit == 7);
  CHECK(result.err ==
        "kvcli: dump /dev/full: cannot write /dev/full: No space left on device (errno 28); free "
        "some space or use another file\n");
  result = RunCli(server, {"dump", "/no/such/place"});
  CHECK(result.exit == 7);
  CHECK(result.err ==
        "kvcli: dump /no/such/place: cannot create a file beside /no/such/place: No such file or "
        "directory (errno 2); use another file\n");
}

}  // namespace
}  // namespace kvd::cli::test
