#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

using namespace std::string_literals;

std::string ValueOf(const FakeServer& server, const std::string& key) {
  const auto found = server.items.find(key);
  return found == server.items.end() ? "<none>" : found->second.first;
}

TEST_CASE("put: the value from an argument") {
  FakeServer server;
  const CliResult result = RunCli(server, {"put", "k", "v"});
  CHECK(result.exit == 0);
  CHECK(result.out == "OK\n");
  CHECK(ValueOf(server, "k") == "v");
  RunCli(server, {"put", "k", ""});
  CHECK(ValueOf(server, "k").empty());
  CHECK(RunCli(server, {"put", "k", "v", "-w", "json"}).out == "{\"key\":\"k\",\"version\":3}\n");
  RunCli(server, {"put", "--hex", "00ff", "0a00"});
  CHECK(ValueOf(server, "\x00\xff"s) == "\n\0"s);
  RunCli(server, {"put", "--", "-k", "--hex"});
  CHECK(ValueOf(server, "-k") == "--hex");
}

TEST_CASE("put: the value from standard input, byte for byte") {
  FakeServer server;
  const std::string value = "a\0b\r\n\xff\n"s + std::string(300'000, 'x');
  CHECK(RunCli(server, {"put", "dash", "-"}, {.in = value}).exit == 0);
  CHECK((ValueOf(server, "dash") == value));
  CHECK(RunCli(server, {"put", "none"}, {.in = value}).exit == 0);
  CHECK((ValueOf(server, "none") == value));
  // Not as digits.
  RunCli(server, {"put", "--hex", "61", "-"}, {.in = "zz"});
  CHECK(ValueOf(server, "a") == "zz");
}

TEST_CASE("put: the value from a file") {
  const kvd::test::TempDir directory;
  const std::string path = directory.Join("value");
  std::ofstream(path, std::ios::binary) << "a\0b\n"s;
  FakeServer server;
  CHECK(RunCli(server, {"put", "k", "@" + path}).exit == 0);
  CHECK(ValueOf(server, "k") == "a\0b\n"s);
  const CliResult result = RunCli(server, {"put", "k", "@/no/such"});
  CHECK(result.exit == 7);
  CHECK(result.err ==
        "kvcli: put k: cannot open /no/such: No such file or directory (errno 2); to store the "
        "text itself add --literal\n");
  CHECK(RunCli(server, {"put", "k", "@/"}).exit == 7);
  const CliResult nameless = RunCli(server, {"put", "k", "@"});
  CHECK(nameless.exit == 2);
  CHECK(nameless.err ==
        "kvcli: put k: @ names no file; give @FILE, or add --literal to store the @ itself\n");
}

TEST_CASE("put: what is longer than the server takes is not read to its end") {
  const kvd::test::TempDir directory;
  const std::string path = directory.Join("long");
  const std::string value(3 << 20, 'x');
  std::ofstream(path, std::ios::binary) << value;
  FakeServer server;
  server.statistics = {{"max_value_bytes", "2097152"}};
  size_t taken = 0;
  CliResult result = RunCli(server, {"put", "k"}, {.in = value, .in_taken = &taken});
  CHECK(result.exit == 5);
  CHECK(taken == 2097153);
  CHECK(result.err ==
        "kvcli: put k: value of more than 2097152 bytes > --max_value 2097152 on the server; store "
        "less under one key, or start kvd with a larger --max_value, and where that is a quarter "
        "of --memory already, with more of that\n");
  result = RunCli(server, {"append", "k", "@" + path});
  CHECK(result.exit == 5);
  CHECK(result.err ==
        "kvcli: append k: value of 3145728 bytes > --max_value 2097152 on the server; store "
        "less under one key, or start kvd with a larger --max_value, and where that is a quarter "
        "of --memory already, with more of that\n");
  CHECK(server.items.empty());

  // As much as it takes; and where it does not say, all of it.
  server.statistics = {{"max_value_bytes", "3145728"}};
  CHECK(RunCli(server, {"put", "k", "-"}, {.in = value}).exit == 0);
  CHECK((ValueOf(server, "k") == value));
  server.statistics = {};
  CHECK(RunCli(server, {"put", "file", "@" + path}).exit == 0);
  CHECK((ValueOf(server, "file") == value));

  // Where there is no server, the rest is nothing to wait for.
  server.connect_error = absl::UnavailableError("nobody there; wait");
  CHECK(RunCli(server, {"put", "k"}, {.in = value, .in_taken = &taken}).exit == 3);
  CHECK(taken == (1 << 20) + 1);
}

TEST_CASE("put: what is longer than kvcli takes is its own limit, not the server's") {
  const kvd::test::TempDir directory;
  const std::string path = directory.Join("long");
  std::ofstream(path, std::ios::binary) << std::string(3 << 20, 'x');
  std::filesystem::resize_file(path, (1 << 30) + 1);
  FakeServer server;
  server.statistics = {{"max_value_bytes", "4294967296"}};
  const CliResult result = RunCli(server, {"put", "k", "@" + path});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: put k: the input is longer than 1 GiB, the most that kvcli takes from a file or "
        "pipe; store it under several keys, or write it with the client library\n");
}

TEST_CASE("put: --literal stores what looks like a file or standard input") {
  FakeServer server;
  RunCli(server, {"put", "a", "@name", "--literal"});
  RunCli(server, {"put", "b", "-", "--literal"}, {.in = "no"});
  CHECK(ValueOf(server, "a") == "@name");
  CHECK(ValueOf(server, "b") == "-");
}

TEST_CASE("put: no value on a terminal, or where commands come from standard input") {
  FakeServer server;
  CliResult result = RunCli(server, {"put", "k"}, {.in_is_terminal = true});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: put k: VALUE is missing; give VALUE, - or @FILE, or redirect standard input\n");
  result = RunCli(server, {}, {.in = "put k -\n"});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: line 1: put k: commands come from standard input, so no value can; give it as "
        "VALUE or @FILE\n");
  CHECK(server.items.empty());
}

TEST_CASE("put: what the server refuses") {
  FakeServer server;
  server.put_errors["k"] = absl::OutOfRangeError("value of 9 bytes > --max_value 8 on the server");
  CliResult result = RunCli(server, {"put", "k", "123456789"});
  CHECK(result.exit == 5);
  CHECK(result.out.empty());
  CHECK(result.err ==
        "kvcli: put k: value of 9 bytes > --max_value 8 on the server; store less under one key, "
        "or start kvd with a larger --max_value, and where that is a quarter "
        "of --memory already, with more of that\n");
  server.put_errors["k"] = absl::UnknownError("the answer was lost");
  result = RunCli(server, {"put", "k", "v"});
  CHECK(result.exit == 3);
  CHECK(result.err ==
        "kvcli: put k: the answer was lost; the write took effect once or not at all: get the key "
        "before you try again\n");
  result = RunCli(server, {"put", "", "v"});
  CHECK(result.exit == 2);
  CHECK(result.err == "kvcli: put: keys have 1 to 4096 bytes; see 'kvcli help put'\n");
}

TEST_CASE("del: counts what was there; what was not makes exit status 1") {
  FakeServer server;
  server.Insert("a", "");
  server.Insert("c", "");
  CliResult result = RunCli(server, {"del", "a", "b", "c"});
  CHECK(result.exit == 1);
  CHECK(result.out == "2\n");
  CHECK(result.err ==
        "kvcli: del b: not found, so there was nothing to delete; 'kvcli scan' lists the keys that "
        "are there\n");
  CHECK(server.items.empty());
  server.Insert("a", "");
  result = RunCli(server, {"del", "a", "-w", "json"});
  CHECK(result.exit == 0);
  CHECK(result.out == "{\"deleted\":1}\n");
  server.Insert("a", "");
  result = RunCli(server, {"del", "a", "b", "c", "-w", "table"});
  CHECK(result.out ==
        "+---------+----+\n"
        "| DELETED | OF |\n"
        "+---------+----+\n"
        "|       1 |  3 |\n"
        "+---------+----+\n");
  CHECK(result.err ==
        "kvcli: del b: not found, so there was nothing to delete; 'kvcli scan' lists the keys that "
        "are there\n"
        "kvcli: del c: not found\n");
  server.operation_error = absl::DeadlineExceededError("late; wait");
  result = RunCli(server, {"del", "a", "b"});
  CHECK(result.exit == 4);
  CHECK(result.err == "kvcli: del a: late; wait\n");
}

TEST_CASE("put: expiry, user flags and conditions") {
  FakeServer server;
  CHECK(RunCli(server, {"put", "k", "v", "--ttl=500ms", "--flags=7"}).exit == 0);
  CHECK(server.items["k"].second.expiry_unix_us == server.now_unix_us + 500'000);
  CHECK(server.items["k"].second.user_flags == 7);
  CHECK(RunCli(server, {"put", "k", "v", "--expire_at=2027-01-31T12:00:00Z"}).exit == 0);
  CHECK(server.items["k"].second.expiry_unix_us == 1'801'396'800'000'000);
  CHECK(RunCli(server, {"put", "k", "v"}).exit == 0);
  CHECK(server.items["k"].second.expiry_unix_us == 0);
  CliResult result = RunCli(server, {"put", "k", "w", "--if=absent"});
  CHECK(result.exit == 1);
  CHECK(result.err ==
        "kvcli: put k: the item has version 3; get the key again, and decide again\n");
  CHECK(RunCli(server, {"put", "none", "w", "--if=present"}).exit == 1);
  CHECK(RunCli(server, {"put", "k", "w", "--if=version:2"}).exit == 1);
  CHECK(ValueOf(server, "k") == "v");
  CHECK(RunCli(server, {"put", "k", "w", "--if=version:3"}).exit == 0);
  CHECK(RunCli(server, {"put", "k", "x", "--if=present"}).exit == 0);
  CHECK(RunCli(server, {"put", "new", "x", "--if=absent"}).exit == 0);
  CHECK(ValueOf(server, "k") == "x");
}

TEST_CASE("put: flags that make no sense are refused before anything is asked") {
  FakeServer server;
  CliResult result = RunCli(server, {"put", "k", "v", "--ttl=1", "--expire_at=1800000000"});
  CHECK(result.exit == 2);
  CHECK(result.err == "kvcli: put k: both --ttl and --expire_at say when it expires; give one\n");
  CHECK(RunCli(server, {"put", "k", "v", "--if=version:0"}).exit == 2);
  CHECK(RunCli(server, {"put", "k", "v", "--flags=4294967296"}).exit == 2);
  CHECK(RunCli(server, {"put", "k", "v", "--ttl=-1"}).exit == 2);
  CHECK(RunCli(server, {"append", "k", "v", "--if=absent"}).exit == 2);
  CHECK(RunCli(server, {"del", "k", "--if=absent"}).exit == 2);
  CHECK(server.connections == 0);
}

TEST_CASE("cas: puts if the version is the one given") {
  FakeServer server;
  server.Insert("k", "v");
  CHECK(RunCli(server, {"cas", "k", "1", "w", "-w", "json"}).out ==
        "{\"key\":\"k\",\"version\":2}\n");
  CliResult result = RunCli(server, {"cas", "k", "1", "x"});
  CHECK(result.exit == 1);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, Catch::Contains("version 2"));
  CHECK(ValueOf(server, "k") == "w");
  CHECK(RunCli(server, {"cas", "none", "1", "x"}).exit == 1);
  CHECK(RunCli(server, {"cas", "k", "2", "-"}, {.in = "piped"}).exit == 0);
  CHECK(ValueOf(server, "k") == "piped");
  for (const std::string wrong : {"0", "x", "", "1x", "99999999999999999999"}) {
    result = RunCli(server, {"cas", "k", wrong, "x"});
    CHECK(result.exit == 2);
    CHECK_THAT(result.err, Catch::Contains("is no version"));
  }
}

TEST_CASE("append and prepend: join what is there") {
  FakeServer server;
  CHECK(RunCli(server, {"append", "k", "b", "--ttl=60"}).out == "OK\n");
  CHECK(RunCli(server, {"append", "k", "-"}, {.in = "c\n"}).exit == 0);
  CHECK(RunCli(server, {"prepend", "k", "a", "--if=present"}).exit == 0);
  CHECK(ValueOf(server, "k") == "abc\n");
  CHECK(server.items["k"].second.expiry_unix_us == server.now_unix_us + 60'000'000);
  CHECK(RunCli(server, {"append", "none", "x", "--if=present"}).exit == 1);
  CHECK(RunCli(server, {"prepend", "k", "x", "--if=version:1"}).exit == 1);
  CHECK(ValueOf(server, "none") == "<none>");
}

TEST_CASE("put, cas, append, prepend: what it means that there is no item") {
  FakeServer server;
  CHECK(RunCli(server, {"put", "k", "v", "--if=present"}).err ==
        "kvcli: put k: not found, and --if asks for an item, so nothing was stored; leave --if out "
        "to store one\n");
  CHECK(RunCli(server, {"put", "k", "v", "--if=version:1"}).exit == 1);
  CHECK(
      RunCli(server, {"cas", "k", "1", "v"}).err ==
      "kvcli: cas k: not found, so it has no version and nothing was stored; 'kvcli put KEY VALUE "
      "--if=absent' stores a first value\n");
  for (const std::string command : {"append", "prepend"}) {
    CHECK(RunCli(server, {command, "k", "v", "--if=present"}).err ==
          "kvcli: " + command +
              " k: not found, and --if asks for an item, so nothing was stored; leave --if out to "
              "store VALUE alone\n");
  }
  CHECK(ValueOf(server, "k") == "<none>");
}

TEST_CASE("put: a ttl and a moment beyond the limit name it") {
  FakeServer server;
  CHECK(RunCli(server, {"put", "k", "v", "--ttl=40000d"}).err ==
        "kvcli: put: --ttl=40000d is too long; give at most 36500d, or 3153600000: without a unit "
        "it is seconds\n");
  CHECK(RunCli(server, {"put", "k", "v", "--expire_at=1800000000000"}).exit == 2);
}

TEST_CASE("del: by version, of one key") {
  FakeServer server;
  server.Insert("k", "v");
  CHECK(RunCli(server, {"del", "k", "--if=version:2"}).exit == 1);
  CHECK(ValueOf(server, "k") == "v");
  CHECK(RunCli(server, {"del", "k", "--if=version:1"}).out == "1\n");
  CHECK(ValueOf(server, "k") == "<none>");
  CHECK(RunCli(server, {"del", "a", "b", "--if=version:1"}).exit == 2);
}

TEST_CASE("put, get, flush: the environment does not say what happens to items") {
  FakeServer server;
  const std::map<std::string, std::string> environment = {
      {"KVCLI_TTL", "1"},   {"KVCLI_IF", "present"}, {"KVCLI_FLAGS", "1"},
      {"KVCLI_TOUCH", "1"}, {"KVCLI_YES", "1"},      {"KVCLI_CURSOR", "x"}};
  CHECK(RunCli(server, {"put", "k", "v"}, {.environment = environment}).exit == 0);
  CHECK(RunCli(server, {"get", "k"}, {.environment = environment}).exit == 0);
  CHECK(RunCli(server, {"touch", "k"}, {.environment = environment}).exit == 0);
  CHECK(RunCli(server, {"scan"}, {.environment = environment}).out == "k\n");
  CHECK(RunCli(server, {"flush"}, {.environment = environment}).exit == 2);
  CHECK(server.items["k"].second.expiry_unix_us == 0);
  CHECK(server.items["k"].second.version == 2);
}

}  // namespace
}  // namespace kvd::cli::test
