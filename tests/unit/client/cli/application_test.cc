#include "client/cli/application.h"

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "client/cli/command.h"
#include "common/base/build_info.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/run_cli.h"

namespace kvd::cli::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using Outcome = LineEditor::Outcome;
using Words = std::vector<std::string>;

TEST_CASE("Application: help and version, in all their forms, need no server") {
  FakeServer server;
  const std::string overview = RunCli(server, {"help"}).out;
  CHECK(overview.starts_with("kvcli: reads and writes"));
  CHECK(RunCli(server, {"--help"}).out == overview);
  CHECK(RunCli(server, {"-h"}).out == overview);
  CHECK(RunCli(server, {"help", "--help"}).out == overview);
  const std::string put = RunCli(server, {"help", "put"}).out;
  CHECK(put.starts_with("kvcli put: "));
  CHECK(RunCli(server, {"put", "--help"}).out == put);
  CHECK(RunCli(server, {"--help", "put"}).out == put);
  CHECK(RunCli(server, {"put", "--help"}).exit == 0);
  const std::string version = RunCli(server, {"version"}).out;
  CHECK(version.starts_with("kvcli "));
  CHECK(RunCli(server, {"--version"}).out == version);
  CHECK(RunCli(server, {"get", "--version"}).out == version);
  CHECK(RunCli(server, {"completion", "bash"}).out.find("complete -F _kvcli kvcli") !=
        std::string::npos);
  CHECK(RunCli(server, {"completion", "zsh"}).out.starts_with("#compdef kvcli\n"));
  CHECK(server.connections == 0);
}

TEST_CASE("Application: usage errors exit with 2 and say what may have been meant") {
  FakeServer server;
  struct Case {
    Words arguments;
    const char* error;
  };
  for (const Case& each : {
           Case{{"gte", "k"}, "kvcli: gte: unknown command; did you mean get?\n"},
           Case{{"set", "k"}, "kvcli: set: unknown command; did you mean put?\n"},
           Case{{"two words"}, "kvcli: \"two words\": unknown command; 'kvcli help' lists them\n"},
           Case{{""}, "kvcli: \"\": unknown command; 'kvcli help' lists them\n"},
           Case{{"get"}, "kvcli: get: KEY is missing; usage: kvcli get KEY\n"},
           Case{{"cas", "k"},
                "kvcli: cas: VERSION is missing; usage: kvcli cas KEY VERSION [VALUE|-|@FILE]\n"},
           Case{{"mget"}, "kvcli: mget: KEY is missing; usage: kvcli mget KEY...\n"},
           Case{{"get", "a", "b"}, "kvcli: get: one argument too many: b; usage: kvcli get KEY\n"},
           Case{{"scan", "x*"},
                "kvcli: scan: one argument too many: x*; did you mean --prefix=x?\n"},
           Case{{"scan", "*"}, "kvcli: scan: one argument too many: *; usage: kvcli scan\n"},
           Case{{"scan", "0", "MATCH", "user:*", "COUNT", "10"},
                "kvcli: scan: one argument too many: 0; did you mean --prefix=user:?\n"},
           Case{{"flush", "x"},
                "kvcli: flush: one argument too many: x; did you mean --prefix=x?\n"},
           Case{{"put", "k", "v", "EX", "60"},
                "kvcli: put: one argument too many: EX; did you mean --ttl=60?\n"},
           Case{{"put", "k", "v", "px", "1500"},
                "kvcli: put: one argument too many: px; did you mean --ttl=1500ms?\n"},
           Case{{"put", "k", "v", "NX"},
                "kvcli: put: one argument too many: NX; did you mean --if=absent?\n"},
           Case{{"touch", "k", "60"},
                "kvcli: touch: one argument too many: 60; did you mean --ttl=60?\n"},
           Case{{"-p", "7711", "get", "k"},
                "kvcli: flags: unknown flag -p; did you mean --server?\n"},
           Case{{"ping", "--stat"},
                "kvcli: ping: unknown flag --stat; did you mean stat --rates?\n"},
           Case{{"--frobnicate", "--stat"},
                "kvcli: flags: unknown flag --frobnicate; see 'kvcli help'\n"},
           Case{{"put", "k", "v", "--ex=60"},
                "kvcli: put: unknown flag --ex; did you mean --ttl?\n"},
           Case{{"get", "--prefix", "user:"},
                "kvcli: get: unknown flag --prefix; did you mean scan --prefix=P?\n"},
           // Where there is no such flag, it is a slip at the most.
           Case{{"get", "k", "--nx"},
                "kvcli: get: unknown flag --nx; if it is a key or a value, put -- before it\n"},
           Case{{"setex", "k", "60", "v"},
                "kvcli: setex: unknown command; did you mean put KEY VALUE --ttl=TIME?\n"},
           Case{{"expire", "k", "60"},
                "kvcli: expire: unknown command; did you mean touch KEY --ttl=TIME?\n"},
           Case{
               {"mset", "k", "v"},
               "kvcli: mset: unknown command; did you mean load -, with a line KEY, TAB, VALUE for "
               "each?\n"},
           Case{{"keys", "*"}, "kvcli: keys: unknown command; did you mean scan --prefix=P?\n"},
           Case{{"localhost:7711", "get", "k"},
                "kvcli: localhost:7711: unknown command; if that is a server, give "
                "--server=localhost:7711\n"},
           Case{{"get", "a", "--hexx"}, "kvcli: get: unknown flag --hexx; did you mean --hex?\n"},
           Case{{"get", "--frobnicate"},
                "kvcli: get: unknown flag --frobnicate; if it is a key or a value, put -- before "
                "it\n"},
           Case{
               {"load", "--frobnicate"},
               "kvcli: load: unknown flag --frobnicate; if it is the name of a file, put -- before "
               "it\n"},
           Case{{"stat", "--frobnicate"},
                "kvcli: stat: unknown flag --frobnicate; see 'kvcli help stat'\n"},
           Case{{"scan", "-q"}, "kvcli: scan: unknown flag -q; see 'kvcli help scan'\n"},
           Case{{"--frobnicate", "get", "a"},
                "kvcli: flags: unknown flag --frobnicate; see 'kvcli help'\n"},
           Case{{"ping", "--count"}, "kvcli: ping: --count needs a value; give --count=N\n"},
           Case{{"help", "nosuch"},
                "kvcli: help nosuch: no such command; 'kvcli help' lists them\n"},
           Case{{"--sever=x", "get", "a"},
                "kvcli: flags: unknown flag --sever; did you mean --server?\n"},
           Case{{"get", "a", "-w", "xml"},
                "kvcli: get: -w=xml is not understood; give one of simple, json, table\n"},
           Case{{"help", "putt"}, "kvcli: help putt: no such command; did you mean put?\n"},
           Case{{"completion", "fish"},
                "kvcli: completion fish: no such shell; give bash or zsh\n"},
       }) {
    const CliResult result = RunCli(server, each.arguments);
    CHECK(result.exit == 2);
    CHECK(result.err == each.error);
    CHECK(result.out.empty());
  }
  CHECK(server.connections == 0);
}

TEST_CASE(
    "Application: device, connect and GID index reach the connector, by flag or environment") {
  FakeServer server;
  server.Insert("k", "v");
  CHECK(RunCli(server, {"get", "k", "--server=rdma:h:1"}).exit == 0);
  CHECK(server.choices.back() == RdmaChoice{});
  CHECK(RunCli(server, {"--device=rxe0", "get", "k", "--connect=tcp", "--gid_index=0"}).exit == 0);
  CHECK(server.choices.back() == RdmaChoice{"rxe0", true, 0});
  const std::map<std::string, std::string> environment = {
      {"KVCLI_DEVICE", "rxe1"}, {"KVCLI_CONNECT", "tcp"}, {"KVCLI_GID_INDEX", "3"}};
  CHECK(RunCli(server, {"get", "k"}, {.environment = environment}).exit == 0);
  CHECK(server.choices.back() == RdmaChoice{"rxe1", true, 3});
  // Larger than any: still not taken for another.
  CHECK(RunCli(server, {"get", "k", "--gid_index=99999999999"}).exit == 0);
  CHECK(server.choices.back().gid_index == INT32_MAX);
  const CliResult wrong = RunCli(server, {"get", "k", "--connect=ib"});
  CHECK(wrong.exit == 2);
  CHECK(wrong.err == "kvcli: get: --connect=ib is not understood; give one of cm, tcp\n");
  CHECK(RunCli(server, {"get", "k", "--gid_index=-1"}).exit == 2);
}

TEST_CASE("Application: another way to the same server is another connection") {
  FakeServer server;
  server.Insert("k", "v");
  CHECK(
      RunCli(server, {}, {.in = "get k\nget k\nget k --device=rxe0\nget k --device=rxe0\nget k\n"})
          .exit == 0);
  CHECK(server.connections == 3);
}

TEST_CASE("Application: no server is exit status 3") {
  FakeServer server;
  server.connect_error = absl::UnavailableError("no socket at /x");
  CliResult result = RunCli(server, {"get", "k", "--server=shm:/x"});
  CHECK(result.exit == 3);
  CHECK(result.err ==
        "kvcli: get k: cannot connect: no socket at /x; start kvd, or name where it listens with "
        "--server\n");
  CHECK(server.targets == Words{"shm:/x"});
  server.connect_error = absl::PermissionDeniedError("not admitted");
  CHECK(RunCli(server, {"get", "k"}).exit == 5);
}

TEST_CASE("Application: flags from before the command, after it, and from the environment") {
  FakeServer server;
  server.Insert("k", "v");
  RunCli(server, {"--server=shm:/a", "get", "k"}, {.environment = {{"KVCLI_SERVER", "shm:/b"}}});
  RunCli(server, {"get", "k"}, {.environment = {{"KVCLI_SERVER", "shm:/b"}}});
  RunCli(server, {"get", "k", "--server", "shm:/c"});
  RunCli(server, {"get", "k"});
  CHECK(server.targets == Words{"shm:/a", "shm:/b", "shm:/c", ""});
  CHECK_FALSE(server.deadline.has_value());
  RunCli(server, {"get", "k", "--deadline=200ms"});
  CHECK(server.deadline == 200ms);
  CHECK(RunCli(server, {"scan"}, {.environment = {{"KVCLI_PREFIX", "x"}}}).out.empty());
  const CliResult result = RunCli(server, {"get", "k"}, {.environment = {{"KVCLI_DEADLINE", "x"}}});
  CHECK(result.exit == 2);
  CHECK(result.err ==
        "kvcli: environment: KVCLI_DEADLINE=x is not understood; give a time of up to 24h such as "
        "5s or 200ms\n");
}

TEST_CASE("Application: a command's flag twice is an error, one in front of it is overridden") {
  FakeServer server;
  const CliResult twice = RunCli(server, {"put", "k", "v", "--if=absent", "--if=present"});
  CHECK(twice.exit == 2);
  CHECK(twice.err == "kvcli: put: --if is given twice, as absent and as present; give one\n");
  CHECK(server.items.empty());
  CHECK(RunCli(server, {"-w", "table", "-w", "json", "put", "k", "v", "-w", "simple"}).out ==
        "OK\n");
}

TEST_CASE("Application: output that cannot be written is an error, not silence") {
  FakeServer server;
  server.Insert("k", "value");
  CliResult result = RunCli(server, {"get", "k"}, {.out_bytes_max = 3, .out_errno = ENOSPC});
  CHECK(result.exit == 7);
  CHECK(result.err ==
        "kvcli: get: cannot write standard output: No space left on device (errno 28); free some "
        "space or use another file\n");
  result = RunCli(server, {"get", "k"}, {.out_bytes_max = 3, .out_errno = EPIPE});
  CHECK(result.exit == 141);
  CHECK(result.err.empty());
}

TEST_CASE("Application: colour only where it is wanted") {
  FakeServer server;
  const std::string line = "kvcli: get k: not found; 'kvcli scan' lists the keys that are there";
  CHECK(RunCli(server, {"get", "k"}).err == line + "\n");
  CHECK(RunCli(server, {"get", "k"}, {.colour = true}).err == "\x1b[31m" + line + "\x1b[0m\n");
}

TEST_CASE("Application: commands from standard input, over one connection") {
  FakeServer server;
  const CliResult result = RunCli(server, {"-w", "json"},
                                  {.in = "# a comment\nput k \"some\\x00text\"\n\n"
                                         "get k\r\nget k -w simple\nPUT 'two words' v"});
  CHECK(result.exit == 0);
  CHECK(result.out ==
        "{\"key\":\"k\",\"version\":1}\n"
        "{\"key\":\"k\",\"value\":\"some\\u0000text\",\"version\":1}\n"
        "some\0text\n{\"key\":\"two words\",\"version\":2}\n"s);
  CHECK(server.connections == 1);
}

TEST_CASE("Application: goes on after a command that fails; the first failure is the exit status") {
  FakeServer server;
  server.Insert("k", "v");
  const CliResult result = RunCli(server, {}, {.in = "get none\nget 'k\ngte\nget k\n"});
  CHECK(result.exit == 1);
  CHECK(result.out == "v\n");
  CHECK(result.err ==
        "kvcli: line 1: get none: not found; 'kvcli scan' lists the keys that are there\n"
        "kvcli: line 2: the single quote is not closed at byte 5; quote like a shell: 'as it is', "
        "\"with \\xNN\"\n"
        "kvcli: line 3: gte: unknown command; did you mean get?\n");
  CHECK(RunCli(server, {}, {.in = ""}).exit == 0);
}

TEST_CASE(
    "Application: goes on after a command that no server was there for, or that was refused") {
  FakeServer server;
  server.fail_targets = {""};
  CliResult result =
      RunCli(server, {}, {.in = "get a\nput b v --server=shm:/b\nget c\nping --server=shm:/b\n"});
  CHECK(result.exit == 3);
  CHECK(result.err ==
        "kvcli: line 1: get a: cannot connect: nobody there; wait\n"
        "kvcli: line 3: get c: cannot connect: nobody there; wait\n");
  CHECK(server.items.contains("b"));
  server.fail_targets.clear();
  server.put_errors["a"] = absl::ResourceExhaustedError("full; delete something");
  result = RunCli(server, {}, {.in = "put a v\nget none\nput c v\n"});
  CHECK(result.exit == 5);
  CHECK(server.items.contains("c"));
}

TEST_CASE("Application: a session for administration ends with its command, another one stays") {
  FakeServer server;
  CHECK(RunCli(server, {}, {.in = "ping\nping\n"}).exit == 0);
  CHECK(server.connections == 2);
  CHECK(RunCli(server, {}, {.in = "exists k\nping\nexists k\nstat\n"}).exit == 1);
  CHECK(server.connections == 3);
}

CliResult Type(FakeServer& server, std::vector<ScriptedEditor::Step> typed,
               ScriptedEditor::Record& record, const Words& arguments = {}) {
  return RunCli(server, arguments,
                {.in_is_terminal = true,
                 .out_is_terminal = true,
                 .environment = {{"HOME", "/home/u"}},
                 .typed = std::move(typed),
                 .record = &record});
}

const std::string kGreeting =
    "kvcli " + std::string(Version()) + ": help lists the commands; exit, quit or Ctrl-D leaves\n";

TEST_CASE("Application: exit and quit end the commands from standard input") {
  for (const std::string word : {"quit", "exit", "kvcli exit"}) {
    FakeServer server;
    const CliResult result = RunCli(server, {}, {.in = "get none\n" + word + "\nput k v\n"});
    CHECK(result.exit == 1);
    CHECK(server.items.empty());
  }
}

TEST_CASE("Application: several values from a pipe are lines; one stays byte-exact") {
  FakeServer server;
  server.Insert("a", "1");
  server.Insert("b", "2\n");
  CHECK(RunCli(server, {}, {.in = "get a\nget b\nget a -w json\n"}).out ==
        "1\n2\n\n{\"key\":\"a\",\"value\":\"1\",\"version\":1}\n");
  CHECK(RunCli(server, {"get", "a"}).out == "1");
}

TEST_CASE("Application: the prompt shows the server of the next command") {
  FakeServer server;
  ScriptedEditor::Record record;
  Type(server, {{Outcome::kLine, "ping --server=shm:/elsewhere"}, {Outcome::kLine, "ping"}}, record,
       {"--server=shm:/here"});
  CHECK(record.prompts == Words(3, "kvd shm:/run/fake.sock> "));
  CHECK(server.targets == Words{"shm:/here", "shm:/elsewhere", "shm:/here"});
  FakeServer gone;
  gone.fail_targets = {"shm:/here"};
  Type(gone, {{Outcome::kLine, "ping --server=shm:/elsewhere"}}, record = {},
       {"--server=shm:/here"});
  CHECK(record.prompts == Words(2, "kvd (not connected)> "));
  CHECK(gone.connections == 1);
}

TEST_CASE("Application: a line at the prompt may be one for a shell") {
  FakeServer server;
  ScriptedEditor::Record record;
  const CliResult result = Type(server,
                                {{Outcome::kLine, "kvcli put k v"},
                                 {Outcome::kLine, "kvcli"},
                                 {Outcome::kLine, "kvcli -w json get k"},
                                 {Outcome::kLine, "--hex get 6b"},
                                 {Outcome::kLine, "kvcli quit"},
                                 {Outcome::kLine, "put never v"}},
                                record);
  CHECK(result.out == kGreeting + "OK\n{\"key\":\"k\",\"value\":\"v\",\"version\":1}\n76\n");
  CHECK(result.err.empty());
  CHECK_FALSE(server.items.contains("never"));
}

TEST_CASE("Application: help at the prompt is about the prompt") {
  FakeServer server;
  for (const std::string line : {"help", "kvcli help", "--help", "help --help"}) {
    ScriptedEditor::Record record;
    const std::string out = Type(server, {{Outcome::kLine, line}}, record).out;
    CHECK_THAT(out, Catch::Contains("exit, quit, Ctrl-D"));
    CHECK_THAT(out, Catch::Contains("  get KEY "));
    CHECK_THAT(out, Catch::Contains("--write_out"));
    CHECK_THAT(out, !Catch::Contains("kvcli help") && !Catch::Contains("kvcli [FLAGS]"));
  }
  ScriptedEditor::Record record;
  const CliResult result = Type(
      server, {{Outcome::kLine, "help put"}, {Outcome::kLine, "nonsense"}, {Outcome::kLine, "get"}},
      record);
  CHECK_THAT(result.out, Catch::Contains("Usage:\n  put KEY"));
  CHECK_THAT(result.out, !Catch::Contains("kvcli help"));
  CHECK(result.err ==
        "nonsense: unknown command; 'help' lists them\n"
        "get: KEY is missing; usage: get KEY\n");
}

TEST_CASE("Application: the prompt runs lines until Ctrl-D, and exits with 0") {
  FakeServer server;
  ScriptedEditor::Record record;
  const CliResult result = Type(server,
                                {{Outcome::kLine, "put k 'a b'"},
                                 {Outcome::kCancelled, "half a li"},
                                 {Outcome::kLine, "   "},
                                 {Outcome::kLine, " get k"},
                                 {Outcome::kLine, "get none"},
                                 {Outcome::kLine, "get \"k"}},
                                record);
  CHECK(result.exit == 0);
  CHECK(result.out == kGreeting + "OK\na b\n");
  CHECK(result.err ==
        "get none: not found; 'scan' lists the keys that are there\n"
        "the double quote is not closed at byte 5; quote like a shell: 'as it is', \"with "
        "\\xNN\"\n");
  CHECK(record.prompts == Words(7, "kvd shm:/run/fake.sock> "));
  // A line with a leading blank is not kept.
  CHECK(record.remembered == Words{"put k 'a b'", "get none", "get \"k"});
  CHECK(record.history_path == "/home/u/.kvcli_history");
  CHECK(server.connections == 1);
}

TEST_CASE("Application: quit and exit leave the prompt") {
  for (const std::string word : {"quit", "exit"}) {
    FakeServer server;
    ScriptedEditor::Record record;
    Type(server, {{Outcome::kLine, word}, {Outcome::kLine, "put k v"}}, record, {"--history="});
    CHECK(server.items.empty());
    CHECK(record.history_path.empty());
  }
}

TEST_CASE("Application: the prompt tells that there is no server, and tries again") {
  FakeServer server;
  server.connect_error = absl::UnavailableError("gone; wait");
  ScriptedEditor::Record record;
  const CliResult result = Type(server, {{Outcome::kLine, "get k"}}, record);
  CHECK(result.exit == 0);
  CHECK(result.err ==
        "kvcli: prompt: cannot connect: gone; wait\nget k: cannot connect: gone; wait\n");
  CHECK(record.prompts == Words(2, "kvd (not connected)> "));
}

TEST_CASE("Application: the prompt needs a terminal on both sides") {
  FakeServer server;
  server.Insert("k", "v");
  CHECK(RunCli(server, {}, {.in = "get k\n", .in_is_terminal = true}).out == "v\n");
}

}  // namespace
}  // namespace kvd::cli::test
