#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

using namespace std::string_literals;

using Words = std::vector<std::string>;

constexpr char kNotFound[] = ": not found; 'kvcli scan' lists the keys that are there\n";

TEST_CASE("get: the value goes out byte for byte, with nothing added") {
  FakeServer server;
  const std::string value = "a\0b\nc\xff\r\n"s;
  server.Insert("k", value);
  const CliResult result = RunCli(server, {"get", "k"});
  CHECK(result.exit == 0);
  CHECK(result.out == value);
  CHECK(result.err.empty());
  server.Insert("empty", "");
  CHECK(RunCli(server, {"get", "empty"}).out.empty());
}

TEST_CASE("get: a terminal gets a newline, and nothing that could steer it") {
  FakeServer server;
  server.Insert("k", "v\x1b[2J");
  server.Insert("lines", "a\nb\n");
  CHECK(RunCli(server, {"get", "k"}, {.out_is_terminal = true}).out == "v\\x1b[2J\n");
  CHECK(RunCli(server, {"get", "lines"}, {.out_is_terminal = true}).out == "a\nb\n");
}

TEST_CASE("get: JSON, table and hexadecimal") {
  FakeServer server;
  server.Insert("k", "v");
  server.Insert("bin", "\xff\x00"s);
  server.items["k"].second.user_flags = 3;
  server.items["k"].second.expiry_unix_us = 17;
  server.now_unix_us = 16;
  CHECK(RunCli(server, {"get", "k", "-w", "json"}).out ==
        "{\"key\":\"k\",\"value\":\"v\",\"version\":1,\"user_flags\":3,\"expiry_unix_us\":17}\n");
  CHECK(RunCli(server, {"get", "bin", "-w", "json"}).out ==
        "{\"key\":\"bin\",\"value_base64\":\"/wA=\",\"version\":2}\n");
  CHECK(RunCli(server, {"get", "62696e", "--hex", "-w", "json"}).out ==
        "{\"key_hex\":\"62696e\",\"value_hex\":\"ff00\",\"version\":2}\n");
  CHECK(RunCli(server, {"get", "62696E", "--hex"}).out == "ff00\n");
  CHECK(RunCli(server, {"get", "bin", "--write_out=table"}).out ==
        "+-----+----------+---------+------------+----------------+\n"
        "| KEY | VALUE    | VERSION | USER_FLAGS | EXPIRY_UNIX_US |\n"
        "+-----+----------+---------+------------+----------------+\n"
        "| bin | \\xff\\x00 |       2 |            |                |\n"
        "+-----+----------+---------+------------+----------------+\n");
  CHECK_THAT(RunCli(server, {"get", "k", "--write_out=table"}).out,
             Catch::Contains("| k   | v     |       1 |          3 |             17 |\n"));
}

TEST_CASE("get: a key that is not there") {
  FakeServer server;
  for (const std::string format : {"simple", "json", "table"}) {
    const CliResult result = RunCli(server, {"get", "no such", "-w", format});
    CHECK(result.exit == 1);
    CHECK(result.out.empty());
    CHECK(result.err == "kvcli: get \"no such\""s + kNotFound);
  }
}

TEST_CASE("get: each error of the store has its exit code") {
  FakeServer server;
  server.operation_error = absl::DeadlineExceededError("no answer within 5 s");
  CliResult result = RunCli(server, {"get", "k"});
  CHECK(result.exit == 4);
  CHECK(result.err ==
        "kvcli: get k: no answer within 5 s; see whether the server answers with 'kvcli ping', or "
        "allow more with --deadline\n");
  server.operation_error = absl::DataLossError("item at 0x40 does not verify");
  result = RunCli(server, {"get", "k"});
  CHECK(result.exit == 6);
  CHECK(result.err ==
        "kvcli: get k: item at 0x40 does not verify; restart kvd, load its data again, and report "
        "this\n");
}

TEST_CASE("get: what is not hexadecimal is refused before anything is asked") {
  FakeServer server;
  const CliResult result = RunCli(server, {"get", "xyz", "--hex"});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: get xyz: not hexadecimal; with --hex give keys and values as two digits a byte\n");
  CHECK(server.connections == 0);
}

TEST_CASE("get: --touch sets the expiry as well") {
  FakeServer server;
  server.Insert("k", "v");
  CHECK(RunCli(server, {"get", "k", "--touch", "--ttl=1m"}).out == "v");
  CHECK(server.items["k"].second.expiry_unix_us == server.now_unix_us + 60'000'000);
  CHECK(RunCli(server, {"get", "k", "--touch", "-w", "json"}).out ==
        "{\"key\":\"k\",\"value\":\"v\",\"version\":3}\n");
  CHECK(server.items["k"].second.expiry_unix_us == 0);
  CHECK(RunCli(server, {"get", "none", "--touch"}).exit == 1);
  const CliResult result = RunCli(server, {"get", "k", "--ttl=60"});
  CHECK(result.exit == 2);
  CHECK(result.err == "kvcli: get k: --ttl and --expire_at go with --touch; add it\n");
}

TEST_CASE("mget: keys are asked for in batches") {
  FakeServer server;
  Words arguments = {"mget"};
  std::string expected;
  for (int i = 0; i < 130; ++i) {
    server.Insert(std::to_string(i), "v" + std::to_string(i));
    arguments.push_back(std::to_string(i));
    expected += "v" + std::to_string(i) + "\n";
  }
  CHECK(RunCli(server, arguments).out == expected);
  CHECK(server.multi_gets == std::vector<size_t>{64, 64, 2});
}

TEST_CASE("mget: a value a line, missing ones as empty lines, and exit status 1") {
  FakeServer server;
  server.Insert("a", "1");
  server.Insert("c", "3");
  CliResult result = RunCli(server, {"mget", "a", "c"});
  CHECK(result.exit == 0);
  CHECK(result.out == "1\n3\n");
  result = RunCli(server, {"mget", "a", "b", "c"});
  CHECK(result.exit == 1);
  CHECK(result.out == "1\n\n3\n");
  CHECK(result.err == "kvcli: mget b"s + kNotFound);
  CHECK(RunCli(server, {"mget", "a", "b"}, {.out_is_terminal = true}).out == "1\n(nil)\n");
}

TEST_CASE("mget: the advice about keys that are missing comes once") {
  FakeServer server;
  CHECK(RunCli(server, {"mget", "a", "b", "c"}).err ==
        "kvcli: mget a"s + kNotFound + "kvcli: mget b: not found\nkvcli: mget c: not found\n");
}

TEST_CASE("get, mget, scan, put: versions that a double cannot hold are strings in JSON") {
  FakeServer server;
  server.last_version = (uint64_t{1} << 53) - 2;
  server.Insert("a", "");
  CHECK_THAT(RunCli(server, {"get", "a", "-w", "json"}).out,
             Catch::EndsWith("\"version\":9007199254740991}\n"));
  CHECK_THAT(RunCli(server, {"put", "a", "", "-w", "json"}).out,
             Catch::EndsWith("\"version\":\"9007199254740992\"}\n"));
  for (const Words& command : {Words{"get", "a"}, Words{"mget", "a"}, Words{"scan"}}) {
    Words arguments = command;
    arguments.insert(arguments.end(), {"-w", "json"});
    CHECK_THAT(RunCli(server, arguments).out,
               Catch::EndsWith("\"version\":\"9007199254740992\"}\n"));
  }
}

TEST_CASE("mget: JSON lines and table") {
  FakeServer server;
  server.Insert("a", "1\n2");
  CHECK(RunCli(server, {"mget", "a", "b", "-w", "json"}).out ==
        "{\"key\":\"a\",\"value\":\"1\\n2\",\"version\":1}\n{\"key\":\"b\",\"value\":null}\n");
  CHECK(RunCli(server, {"mget", "a", "b", "-w", "table"}).out ==
        "+-----+-------+---------+------------+----------------+\n"
        "| KEY | VALUE | VERSION | USER_FLAGS | EXPIRY_UNIX_US |\n"
        "+-----+-------+---------+------------+----------------+\n"
        "| a   | 1\\n2  |       1 |            |                |\n"
        "+-----+-------+---------+------------+----------------+\n");
}

TEST_CASE("mget: stops at an error of the server") {
  FakeServer server;
  server.operation_error = absl::UnavailableError("the server went away");
  const CliResult result = RunCli(server, {"mget", "a", "b"});
  CHECK(result.exit == 3);
  CHECK(result.err ==
        "kvcli: mget a: the server went away; start kvd, or name where it listens with --server\n");
}

TEST_CASE("exists: counts as redis does; the exit status says whether all are there") {
  FakeServer server;
  server.Insert("a", "");
  CliResult result = RunCli(server, {"exists", "a", "a"});
  CHECK(result.exit == 0);
  CHECK(result.out == "2\n");
  result = RunCli(server, {"exists", "a", "b"});
  CHECK(result.exit == 1);
  CHECK(result.out == "1\n");
  CHECK(result.err.empty());
  CHECK(RunCli(server, {"exists", "b", "-w", "json"}).out == "{\"exists\":0,\"of\":1}\n");
  CHECK(RunCli(server, {"exists", "a", "-w", "table"}).out.find("EXISTS") != std::string::npos);
  server.operation_error = absl::UnavailableError("gone; wait");
  result = RunCli(server, {"exists", "a"});
  CHECK(result.exit == 3);
  CHECK(result.err == "kvcli: exists a: gone; wait\n");
}

}  // namespace
}  // namespace kvd::cli::test
