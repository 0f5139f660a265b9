#include "client/cli/command_line.h"

#include <string>
#include <string_view>
#include <vector>

#include "common/base/random.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/random_bytes.h"

namespace kvd::cli {
namespace {

using namespace std::string_literals;
using Words = std::vector<std::string>;

Words Split(std::string_view line) {
  const auto words = SplitCommandLine(line);
  KVD_REQUIRE_OK(words);
  return *words;
}

TEST_CASE("CommandLine: blanks separate, quotes join") {
  CHECK(Split("").empty());
  CHECK(Split(" \t ").empty());
  CHECK(Split("  get   a\tb ") == Words{"get", "a", "b"});
  CHECK(Split("put 'two words' \"and three\"") == Words{"put", "two words", "and three"});
  CHECK(Split("a'b c'd\"e f\"") == Words{"ab cde f"});
  CHECK(Split("put k '' \"\"") == Words{"put", "k", "", ""});
}

TEST_CASE("CommandLine: each quote has its own escapes") {
  CHECK(Split(R"('a\n"b')") == Words{"a\\n\"b"});
  CHECK(Split(R"("\n\t\r\\\"\x00\xfF'")") == Words{"\n\t\r\\\"\x00\xff'"s});
  CHECK(Split(R"(a\ b \' \" \\ \n)") == Words{"a b", "'", "\"", "\\", "n"});
}

TEST_CASE("CommandLine: a comment begins where a word could") {
  CHECK(Split("# all").empty());
  CHECK(Split("get a # why") == Words{"get", "a"});
  CHECK(Split("get a#b '#c'") == Words{"get", "a#b", "#c"});
}

TEST_CASE("CommandLine: says what is not closed, and where") {
  const std::string hint = "; quote like a shell: 'as it is', \"with \\xNN\"";
  for (const auto& [line, error] : {
           std::pair("get 'a", "the single quote is not closed at byte 5"),
           std::pair("get \"a\\\"", "the double quote is not closed at byte 5"),
           std::pair("get a\\", "nothing follows the backslash at byte 6"),
           std::pair("\"\\q\"",
                     "no escape (\\n \\t \\r \\\\ \\\" \\xNN) follows the backslash at byte 2"),
           std::pair("\"\\x1\"",
                     "no escape (\\n \\t \\r \\\\ \\\" \\xNN) follows the backslash at byte 2"),
           std::pair("\"\\",
                     "no escape (\\n \\t \\r \\\\ \\\" \\xNN) follows the backslash at byte 2"),
       }) {
    INFO(line);
    const auto words = SplitCommandLine(line);
    KVD_REQUIRE_CODE(words, kInvalidArgument);
    CHECK(kvd::test::MessageOf(words) == error + hint);
  }
}

TEST_CASE("CommandLine: takes any bytes without harm") {
  Random random(kvd::test::Seed());
  for (int i = 0; i < 5000; ++i)
    SplitCommandLine(test::RandomBytes(random, 40)).status().IgnoreError();
}

}  // namespace
}  // namespace kvd::cli
