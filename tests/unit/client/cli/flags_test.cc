#include "client/cli/flags.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::cli {
namespace {

using Words = std::vector<std::string>;
using namespace std::chrono_literals;

constexpr Flag kFlags[] = {
    {"server", '\0', FlagKind::kText, "TARGET", "here", "where"},
    {"write_out", 'w', FlagKind::kChoice, "simple|json", "simple", "form"},
    {"count", 'c', FlagKind::kCount, "N", "1", "how many"},
    {"deadline", '\0', FlagKind::kDuration, "TIME", "5s", "how long"},
    {"max_line", '\0', FlagKind::kBytes, "BYTES", "1m", "how much"},
    {"hex", 'x', FlagKind::kSwitch, "", "false", "digits"},
    {"if", '\0', FlagKind::kChoice, "absent|version:N", "", "when"},
    {"ttl", '\0', FlagKind::kTtl, "TIME", "", "how long"},
    {"at", '\0', FlagKind::kMoment, "TIME", "", "until when"},
    {"help", 'h', FlagKind::kSwitch, "", "false", "help", false},
};

FlagValues Known() {
  FlagValues values;
  values.Declare(kFlags);
  return values;
}

Words Take(FlagValues& values, const Words& arguments, bool leading_only = false) {
  const auto rest = values.TakeArguments(arguments, {.leading_only = leading_only});
  KVD_REQUIRE_OK(rest);
  return *rest;
}

std::string ErrorOf(const Words& arguments) {
  FlagValues values = Known();
  const auto rest = values.TakeArguments(arguments, {});
  KVD_REQUIRE_CODE(rest, kInvalidArgument);
  return kvd::test::MessageOf(rest);
}

TEST_CASE("Flags: without any, the defaults hold") {
  FlagValues values = Known();
  CHECK(Take(values, {"a", "-", ""}) == Words{"a", "-", ""});
  CHECK(values.Text("server") == "here");
  CHECK(values.Count("count") == 1);
  CHECK(values.Count("max_line") == 1 << 20);
  CHECK(values.Duration("deadline") == 5s);
  CHECK_FALSE(values.Switch("hex"));
  CHECK_FALSE(values.IsSet("server"));
}

TEST_CASE("Flags: given twice, where once is asked for, only with the same value") {
  const auto take_once = [](const Words& arguments) {
    FlagValues values = Known();
    return values.TakeArguments(arguments, {.once = true});
  };
  for (const Words& same : {Words{"--if=absent", "k", "--if", "absent"}, Words{"-c5", "--count=5"},
                            Words{"-x", "--hex"}}) {
    KVD_REQUIRE_OK(take_once(same));
  }
  const auto twice = take_once({"--if=absent", "k", "--if=version:7"});
  KVD_REQUIRE_CODE(twice, kInvalidArgument);
  CHECK(kvd::test::MessageOf(twice) == "--if is given twice, as absent and as version:7; give one");
  KVD_REQUIRE_CODE(take_once({"-c5", "--count=6"}), kInvalidArgument);
  KVD_REQUIRE_CODE(take_once({"-x", "--hex=false"}), kInvalidArgument);
  // In two lots the later one counts, as ever.
  FlagValues values = Known();
  KVD_REQUIRE_OK(values.TakeArguments(Words{"-c5"}, {.once = true}));
  KVD_REQUIRE_OK(values.TakeArguments(Words{"-c6"}, {.once = true}));
  CHECK(values.Count("count") == 6);
}

TEST_CASE("Flags: every way to write one, anywhere among the arguments") {
  FlagValues values = Known();
  CHECK(Take(values, {"--server=there", "a", "--write-out", "json", "-c7", "b", "-x",
                      "--deadline=1m30s", "--max_line=4k"}) == Words{"a", "b"});
  CHECK(values.Text("server") == "there");
  CHECK(values.Text("write_out") == "json");
  CHECK(values.Count("count") == 7);
  CHECK(values.Switch("hex"));
  CHECK(values.Duration("deadline") == 90s);
  CHECK(values.Count("max_line") == 4096);
  CHECK(values.IsSet("server"));
  // The last one counts; a value may be empty, and look like a flag behind the '='.
  CHECK(Take(values, {"--server=", "-c=3", "-c", "4", "--hex=false"}).empty());
  CHECK(values.Text("server").empty());
  CHECK(values.Count("count") == 4);
  CHECK_FALSE(values.Switch("hex"));
  CHECK(Take(values, {"--server=--hex"}).empty());
  CHECK(values.Text("server") == "--hex");
  CHECK_FALSE(values.Switch("hex"));
  CHECK(Take(values, {"--server", "-", "-c", "5"}).empty());
  CHECK(values.Text("server") == "-");
  CHECK(Take(values, {"--deadline=2"}).empty());
  CHECK(values.Duration("deadline") == 2s);
}

TEST_CASE("Flags: two dashes end them") {
  FlagValues values = Known();
  CHECK(Take(values, {"-x", "a", "--", "-b", "--", "--hex"}) == Words{"a", "-b", "--", "--hex"});
}

TEST_CASE("Flags: the leading ones end at the command") {
  FlagValues values = Known();
  CHECK(Take(values, {"-w", "json", "get", "-k", "--hex"}, true) == Words{"get", "-k", "--hex"});
  CHECK_FALSE(values.Switch("hex"));
  CHECK(Take(values, {"--", "get"}, true) == Words{"get"});
}

TEST_CASE("Flags: what is wrong is named, with what may have been meant") {
  CHECK(ErrorOf({"--sever=x"}) == "unknown flag --sever; did you mean --server?");
  CHECK(ErrorOf({"--frobnicate"}) == "unknown flag --frobnicate");
  CHECK(ErrorOf({"-q"}) == "unknown flag -q");
  CHECK(ErrorOf({"--if=now"}) == "--if=now is not understood; give one of absent, version:N");
  for (const char* wrong : {"version:", "version:x", "version:-1", "version:N", "version"}) {
    CHECK(ErrorOf({std::string("--if=") + wrong}).find("not understood") != std::string::npos);
  }
  CHECK(ErrorOf({"--ttl=0"}) ==
        "--ttl=0 is not understood; give a time above 0 such as 60, 500ms, 10m, 2h or 1d");
  CHECK(ErrorOf({"--ttl=40000d"}) ==
        "--ttl=40000d is too long; give at most 36500d, or 3153600000: without a unit it is "
        "seconds");
  CHECK(ErrorOf({"--at=1800000000000"}) ==
        "--at=1800000000000 is too late; give at most 253402300799, the end of the year 9999: a "
        "number is seconds of Unix time, not milliseconds");
  CHECK(ErrorOf({"--at=soon"}) ==
        "--at=soon is not understood; give Unix seconds, or a time such as 2027-01-31T12:00:00Z");
  CHECK(ErrorOf({"--server"}) == "--server needs a value; give --server=TARGET");
  CHECK(ErrorOf({"-w"}) == "-w needs a value; give --write_out=simple|json");
  CHECK(ErrorOf({"--write_out=xml"}) ==
        "--write_out=xml is not understood; give one of simple, json");
  CHECK(ErrorOf({"--hex=maybe"}) == "--hex=maybe is not understood; give true or false");
  CHECK(ErrorOf({"--count=-1"}) == "--count=-1 is not understood; give a whole number, 0 or more");
  CHECK(ErrorOf({"--count=99999999999999999999"}) ==
        "--count=99999999999999999999 is too large; give at most 18446744073709551615");
  CHECK(ErrorOf({"--max_line=0"}) ==
        "--max_line=0 is not understood; give a number of bytes above 0, or one with a suffix k, "
        "m, g or t such as 64m");
  CHECK(ErrorOf({"--max_line=99999999t"}) ==
        "--max_line=99999999t is too large; give less than 2^64 bytes");
  for (const std::string text : {"", "abc", "0", "0s", "-1s", "25h", "inf", "99999999999999999"}) {
    CHECK(ErrorOf({"--deadline=" + text}) ==
          "--deadline=" + text +
              " is not understood; give a time of up to 24h such as 5s or 200ms");
  }
}

TEST_CASE("Flags: what looks like a flag is no value, unless it is written behind '='") {
  CHECK(ErrorOf({"--server", "--hex"}) ==
        "--server needs a value, and --hex looks like a flag; give --server=TARGET, or "
        "--server=--hex if that is the value");
  CHECK(ErrorOf({"--server", "--"}) ==
        "--server needs a value, and -- looks like a flag; give --server=TARGET, or --server=-- if "
        "that is the value");
  CHECK(ErrorOf({"-c", "-x"}) == "-c needs a value, and -x looks like a flag; give --count=N");
  CHECK(ErrorOf({"--ttl", "--hex"}) ==
        "--ttl needs a value, and --hex looks like a flag; give --ttl=TIME");
}

TEST_CASE("Flags: the environment sets what the command line does not") {
  const std::map<std::string, std::string> variables = {{"KVCLI_SERVER", ""},
                                                        {"KVCLI_HEX", "1"},
                                                        {"KVCLI_COUNT", "3"},
                                                        {"KVCLI_WRITE_OUT", ""},
                                                        {"KVCLI_HELP", "1"}};
  const auto environment = [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  FlagValues values = Known();
  KVD_REQUIRE_OK(values.TakeEnvironment(environment));
  CHECK(Take(values, {"--count=9"}).empty());
  CHECK(values.Text("server").empty());         // set to nothing
  CHECK(values.Text("write_out") == "simple");  // nothing is no choice
  CHECK(values.Switch("hex"));
  CHECK(values.Count("count") == 9);
  CHECK_FALSE(values.Switch("help"));  // not from there
  // Looked at once: a later look does not undo the command line.
  KVD_REQUIRE_OK(values.TakeEnvironment(environment));
  CHECK(values.Count("count") == 9);
}

TEST_CASE("Flags: a wrong variable is named") {
  FlagValues values = Known();
  const absl::Status status = values.TakeEnvironment(
      [](const char* name) { return std::string(name) == "KVCLI_COUNT" ? "many" : nullptr; });
  KVD_REQUIRE_CODE(status, kInvalidArgument);
  CHECK(kvd::test::MessageOf(status) ==
        "KVCLI_COUNT=many is not understood; give a whole number, 0 or more");
}

TEST_CASE("Flags: conditions, times to live, moments, and numbers that look like flags") {
  FlagValues values = Known();
  CHECK(values.Ttl("ttl") == 0us);
  CHECK(values.MomentUnixUs("at") == 0);
  CHECK(Take(values, {"-5", "--if=version:17", "--ttl=1m", "--at=1800000000"}) == Words{"-5"});
  CHECK(values.Text("if") == "version:17");
  CHECK(values.Ttl("ttl") == 60s);
  CHECK(values.MomentUnixUs("at") == 1'800'000'000'000'000);
  CHECK(values.IsDeclared("if"));
  CHECK_FALSE(values.IsDeclared("iff"));
  CHECK(CompletionsOf(kFlags[6]) == std::vector<std::string_view>{"absent", "version:"});
}

TEST_CASE("Flags: usage and choices come from the table") {
  CHECK(FlagUsage(kFlags[1]) == "-w, --write_out=simple|json");
  CHECK(FlagUsage(kFlags[0]) == "    --server=TARGET");
  CHECK(ChoicesOf(kFlags[1]) == std::vector<std::string_view>{"simple", "json"});
  CHECK(ChoicesOf(kFlags[0]).empty());
  CHECK(EnvironmentName(kFlags[1]) == "KVCLI_WRITE_OUT");
}

}  // namespace
}  // namespace kvd::cli
