#include <fstream>
#include <string>
#include <utility>

#include "tests/support/temp_dir.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

using namespace std::string_literals;

TEST_CASE("load: a file, told by its name, and a summary on standard error") {
  const kvd::test::TempDir directory;
  const std::string path = directory.Join("x.tsv");
  std::ofstream(path, std::ios::binary) << "{a}\t1\nb\t22\n";
  FakeServer server;
  const CliResult result = RunCli(server, {"load", path});
  CHECK(result.exit == 0);
  CHECK(result.out.empty());
  CHECK(result.err ==
        "kvcli: load " + path + ": 2 items (7 B) in 0.00 s, 0 bad lines, 0 refused\n");
  CHECK(server.items.at("{a}").first == "1");
}

TEST_CASE("load: standard input, and counts as JSON") {
  FakeServer server;
  const CliResult result =
      RunCli(server, {"load", "-", "-w", "json"}, {.in = "{\"key\":\"a\",\"value\":\"b\"}\n"});
  CHECK(result.exit == 0);
  CHECK(result.err == "kvcli: load -: 1 item (2 B) in 0.00 s, 0 bad lines, 0 refused\n");
  CHECK(result.out ==
        "{\"items\":1,\"bytes\":2,\"bad_lines\":0,\"refused\":0,\"expired\":0,\"seconds\":0.000000}"
        "\n");
}

TEST_CASE("load: --ttl and --expire_at are for lines that do not say when their item expires") {
  FakeServer server;
  const std::string lines = "a\t1\nb\t2\texpiry_unix_us=1900000000000000\n";
  const auto expiry_of = [&server](const char* key) {
    return server.items.at(key).second.expiry_unix_us;
  };
  CHECK(RunCli(server, {"load", "-", "--ttl=1m"}, {.in = lines}).exit == 0);
  CHECK(expiry_of("a") == server.now_unix_us + 60'000'000);
  CHECK(expiry_of("b") == 1'900'000'000'000'000);
  CHECK(RunCli(server, {"load", "-", "--expire_at=1850000000"}, {.in = lines}).exit == 0);
  CHECK(expiry_of("a") == 1'850'000'000'000'000);
  CHECK(expiry_of("b") == 1'900'000'000'000'000);
  CHECK(RunCli(server, {"load", "-"}, {.in = lines}).exit == 0);
  CHECK(expiry_of("a") == 0);
  CliResult result = RunCli(server, {"load", "-", "--expire_at=1000000000"}, {.in = "c\t1\n"});
  CHECK(result.exit == 0);
  CHECK_THAT(result.err, Catch::Contains("0 items") && Catch::Contains("1 expired"));
  CHECK_FALSE(server.items.contains("c"));
  result = RunCli(server, {"load", "-", "--ttl=1m", "--expire_at=1850000000"}, {.in = lines});
  CHECK(result.exit == 2);
  CHECK(result.err == "kvcli: load -: both --ttl and --expire_at say when it expires; give one\n");
}

TEST_CASE("load: delimited records keep all that follows the first separator") {
  FakeServer server;
  const std::string records =
      "0041;LATIN CAPITAL LETTER A;Lu;0\r\n0042;LATIN CAPITAL LETTER B;Lu;0\n";
  CHECK(
      RunCli(server, {"load", "-", "--format=delimited", "--separator=;"}, {.in = records}).exit ==
      0);
  CHECK(server.items.at("0041").first == "LATIN CAPITAL LETTER A;Lu;0");
  CHECK(RunCli(server, {"load", "-", "--separator=\\t"}, {.in = "a\tb\\n\tc\n"}).exit == 0);
  CHECK(server.items.at("a").first == "b\\n\tc");
}

TEST_CASE("load: bad lines make exit status 2, refused items 5") {
  FakeServer server;
  CliResult result = RunCli(server, {"load", "-"}, {.in = "a\t1\nbad\nc\t3"});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: load -: line 2: no TAB between key and value; not loaded\n"
        "kvcli: load -: 2 items (4 B) in 0.00 s, 1 bad line, 0 refused\n");
  server.put_errors["c"] = absl::ResourceExhaustedError("the region is full");
  result = RunCli(server, {"load", "-"}, {.in = "bad\nc\t3\nd\t4\n"});
  CHECK(result.exit == 5);
  CHECK(
      result.err ==
      "kvcli: load -: line 1: no TAB between key and value; not loaded\n"
      "kvcli: load -: line 2 was refused: the region is full; delete what is not needed, or start "
      "kvd with a larger --memory or with --evict=lru\n"
      "kvcli: load -: 1 item (2 B) in 0.00 s, 1 bad line, 1 refused\n");
}

TEST_CASE("load: a server without room is told of once, with how many lines it refused") {
  FakeServer server;
  std::string input;
  for (int i = 1; i <= 100; ++i) {
    const std::string key = "k" + std::to_string(i);
    input += key + "\tv\n";
    if (i > 3) server.put_errors[key] = absl::ResourceExhaustedError("no room; delete something");
  }
  const CliResult result = RunCli(server, {"load", "-"}, {.in = input});
  CHECK(result.exit == 5);
  CHECK(result.err ==
        "kvcli: load -: 97 lines were refused, the first of them line 4: no room; delete "
        "something\n"
        "kvcli: load -: 3 items (9 B) in 0.00 s, 0 bad lines, 97 refused\n");
}

TEST_CASE("load: a bad expiry is told by line, field and cause") {
  FakeServer server;
  const CliResult result =
      RunCli(server, {"load", "-"},
             {.in = "a\t1\nb\t2\texpiry_unix_us=soon\nc\t3\texpiry_unix_us=0\tuser_flags=1\n"
                    "d\t4\tuser_flags=4294967296\n"});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: load -: line 2: field expiry_unix_us=soon is no whole number from 1 to "
        "9223372036854775807; write microseconds of Unix time, or leave the field out; not loaded\n"
        "kvcli: load -: line 3: field expiry_unix_us=0 is no whole number from 1 to "
        "9223372036854775807; write microseconds of Unix time, or leave the field out; not loaded\n"
        "kvcli: load -: line 4: field user_flags=4294967296 is no whole number from 1 to "
        "4294967295; write a number of 32 bits, or leave the field out; not loaded\n"
        "kvcli: load -: 1 item (2 B) in 0.00 s, 3 bad lines, 0 refused\n");
}

TEST_CASE("load: of many bad lines only the first are shown, all are counted") {
  FakeServer server;
  std::string input = "a\t1\n";
  for (int i = 0; i < 1000; ++i) input += "bad\n";
  const CliResult result = RunCli(server, {"load", "-"}, {.in = input});
  CHECK(result.err.find("line 21:") != std::string::npos);
  CHECK(result.err.find("line 22:") == std::string::npos);
  CHECK(
      result.err.ends_with("kvcli: load -: further bad lines are only counted\n"
                           "kvcli: load -: 1 item (2 B) in 0.00 s, 1000 bad lines, 0 refused\n"));
}

TEST_CASE("load: an empty --separator is refused, not passed over") {
  FakeServer server;
  const CliResult result = RunCli(server, {"load", "-", "--separator="}, {.in = "a\t1\n"});
  CHECK(result.exit == 2);
  CHECK(result.err.starts_with("kvcli: load -: --separator is empty; give what ends the key"));
}

TEST_CASE("load: a line longer than --max_line is a bad one") {
  FakeServer server;
  const CliResult result =
      RunCli(server, {"load", "-", "--max_line=10"}, {.in = "a\t12345678901\nb\t1\n"});
  CHECK(result.exit == 2);
  CHECK(result.err.starts_with(
      "kvcli: load -: line 1: longer than 10 bytes; give a larger --max_line to "
      "load it; not loaded\n"));
  CHECK(server.items.contains("b"));
}

TEST_CASE("load: stops when the server is lost, and says how far it came") {
  FakeServer server;
  server.put_errors["b"] = absl::UnavailableError("the server went away; wait");
  CliResult result = RunCli(server, {"load", "-"}, {.in = "a\t1\nb\t2\nc\t3\n"});
  CHECK(result.exit == 3);
  CHECK(result.err ==
        "kvcli: load -: stopped at line 2: the server went away; wait\n"
        "kvcli: load -: 2 items (4 B) in 0.00 s, 0 bad lines, 0 refused\n");
  server.put_errors["b"] = absl::DeadlineExceededError("late; wait");
  CHECK(RunCli(server, {"load", "-"}, {.in = "b\t2\n"}).exit == 4);
  server.put_errors["b"] = absl::DataLossError("broken; wait");
  CHECK(RunCli(server, {"load", "-"}, {.in = "b\t2\n"}).exit == 6);
}

TEST_CASE("load: Ctrl-C ends it with a summary") {
  FakeServer server;
  int lines = 0;
  const CliResult result =
      RunCli(server, {"load", "-"},
             {.in = "a\t1\nb\t2\nc\t3\n", .interrupted = [&lines] { return ++lines >= 2; }});
  CHECK(result.exit == 130);
  CHECK(result.err ==
        "kvcli: load -: interrupted after line 2\n"
        "kvcli: load -: 2 items (4 B) in 0.00 s, 0 bad lines, 0 refused\n");
}

TEST_CASE("load: a compressed file is named as what it is, with the way to load it") {
  const kvd::test::TempDir directory;
  FakeServer server;
  const std::pair<std::string, std::string> kinds[] = {{"\x1f\x8b\x08rest", "zcat"},
                                                       {"\x28\xb5\x2f\xfdrest", "zstdcat"},
                                                       {"\xfd"
                                                        "7zXZ\0rest"s,
                                                        "xzcat"},
                                                       {"BZh91AY&SYrest", "bzcat"}};
  for (const auto& [bytes, unpacker] : kinds) {
    const std::string path = directory.Join("x.tsv");
    std::ofstream(path, std::ios::binary) << bytes;
    CliResult result = RunCli(server, {"load", path});
    CHECK(result.exit == 2);
    CHECK(result.err == "kvcli: load " + path +
                            ": is compressed, nothing was loaded; unpack it on the way: " +
                            unpacker + " " + path + " | kvcli load -\n");
    result = RunCli(server, {"load", "-"}, {.in = bytes});
    CHECK(result.exit == 2);
    CHECK_THAT(result.err, Catch::Contains(unpacker + " FILE | kvcli load -"));
  }
  for (const std::string few : {"", "a", "(", "(a", "a\tb"}) {
    CHECK_THAT(RunCli(server, {"load", "-"}, {.in = few}).err, !Catch::Contains("compressed"));
  }
  CHECK(server.items.at("a").first == "b");
}

TEST_CASE("load: a file that holds no text is not loaded, unless its format was given") {
  FakeServer server;
  const std::string rubbish =
      "\x7f"
      "ELF\t\0\n\xff\t\xfe\n"s;
  CliResult result = RunCli(server, {"load", "-"}, {.in = rubbish});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: load -: begins with a byte of zero, so it is no text and nothing was loaded; if "
        "its lines are items all the same, add --format=tsv\n");
  CHECK(server.items.empty());
  result = RunCli(server, {"load", "-"}, {.in = "caf\xe9\t1\n"});
  CHECK(result.exit == 2);
  CHECK_THAT(result.err, Catch::Contains("begins with bytes that are not UTF-8"));
  CHECK(server.items.empty());
  CHECK(RunCli(server, {"load", "-", "--format=tsv"}, {.in = "caf\xe9\t1\n"}).exit == 0);
  CHECK(server.items.at("caf\xe9").first == "1");
  // Of JSON lines none that is rubbish is stored, and the others are.
  result = RunCli(server, {"load", "-"},
                  {.in = "{\"key\":\"\xff\",\"value\":\"\"}\n{\"key\":\"k\",\"value\":\"v\"}\n"});
  CHECK(result.exit == 2);
  CHECK_THAT(result.err, Catch::Contains("1 item (2 B)") && Catch::Contains("1 bad line"));
  CHECK(RunCli(server, {"load", "-", "--separator=,"}, {.in = "\xff,\0\n"s}).exit == 0);
  CHECK(server.items.at("\xff").first == "\0"s);
}

TEST_CASE("load: flags that do not fit, and files that are not there, before anything is asked") {
  FakeServer server;
  CliResult result = RunCli(server, {"load", "x", "--format=delimited"});
  CHECK(result.exit == 2);
  CHECK(result.err == "kvcli: load x: --format=delimited needs a separator; give --separator=S\n");
  result = RunCli(server, {"load", "x", "--format=tsv", "--separator=;"});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: load x: --separator does not go with --format=tsv; leave one of them out\n");
  CHECK(RunCli(server, {"load", "x", "--separator=\\q"}).exit == 2);
  result = RunCli(server, {"load", "/no/such"});
  CHECK(result.exit == 7);
  CHECK(result.err ==
        "kvcli: load /no/such: cannot open /no/such: No such file or directory (errno 2); give a "
        "file that can be read, or -\n");
  CHECK(RunCli(server, {"load", "/"}).exit == 7);
  result = RunCli(server, {}, {.in = "load -\n"});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: line 1: load -: commands come from standard input, so no items can; give a file\n");
  CHECK(server.connections == 0);
}

TEST_CASE("load: what has expired since it was dumped is counted, and not stored") {
  FakeServer server;
  server.Insert("a", "newer");
  const std::string past = "{\"key\":\"a\",\"value\":\"1\",\"expiry_unix_us\":1000}\n";
  const CliResult result =
      RunCli(server, {"load", "-"}, {.in = past + "{\"key\":\"b\",\"value\":\"2\"}\n"});
  CHECK(result.exit == 0);
  CHECK(result.err == "kvcli: load -: 1 item (2 B) in 0.00 s, 0 bad lines, 0 refused, 1 expired\n");
  CHECK(server.items.at("a").first == "newer");
}

TEST_CASE("load: reads what dump writes, whatever is in it") {
  FakeServer from;
  from.Insert("k\tey\n", std::string("\0\xff\r\n\\", 5));
  from.Insert("\xEF\xBB\xBF{", "");
  from.Insert("text", "\u00e9");
  from.items["text"].second.user_flags = 5;
  from.items["text"].second.expiry_unix_us = from.now_unix_us + 1;
  for (const std::string format : {"tsv", "jsonl"}) {
    const CliResult dumped = RunCli(from, {"dump", "--format=" + format});
    FakeServer to;
    CHECK(RunCli(to, {"load", "-"}, {.in = dumped.out}).exit == 0);
    CHECK(to.items.size() == from.items.size());
    for (const auto& [key, item] : from.items) CHECK(to.items.at(key).first == item.first);
    CHECK(to.items.at("text").second.user_flags == 5);
    CHECK(to.items.at("text").second.expiry_unix_us == from.now_unix_us + 1);
  }
}

}  // namespace
}  // namespace kvd::cli::test
