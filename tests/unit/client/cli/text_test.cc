#include "client/cli/text.h"

#include <string>
#include <string_view>

#include "common/base/random.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/random_bytes.h"

namespace kvd::cli {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

TEST_CASE("Text: UTF-8 is what the Unicode Standard calls well-formed") {
  for (const std::string_view good : {""sv, "a\0b"sv, "\u00e9"sv, "\u0800"sv, "\xed\x9f\xbf"sv,
                                      "\uffff"sv, "\U00010000"sv, "\U0010FFFF"sv}) {
    INFO(HexOf(good));
    CHECK(IsValidUtf8(good));
  }
  for (const std::string_view bad :
       {"\x80"sv, "\xbf"sv, "\xc0\x80"sv, "\xc1\xbf"sv, "\xc3"sv, "\xe0\x9f\xbf"sv, "\xe0\xa0"sv,
        "\xed\xa0\x80"sv, "\xf0\x8f\xbf\xbf"sv, "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv,
        "\xff"sv, "\xf0\x90\x80"sv, "\xe2\x28\xa1"sv}) {
    INFO(HexOf(bad));
    CHECK_FALSE(IsValidUtf8(bad));
    CHECK_FALSE(IsValidUtf8("ok" + std::string(bad)));
  }
}

TEST_CASE("Text: hexadecimal round-trips and takes nothing else") {
  Random random(kvd::test::Seed());
  for (int i = 0; i < 200; ++i) {
    const std::string bytes = test::RandomBytes(random, 40);
    CHECK(BytesOfHex(HexOf(bytes)) == bytes);
  }
  CHECK(BytesOfHex("00fFA9") == "\x00\xff\xa9"s);
  CHECK(BytesOfHex("") == "");
  CHECK_FALSE(BytesOfHex("0").has_value());
  CHECK_FALSE(BytesOfHex("0g").has_value());
  CHECK_FALSE(BytesOfHex("0x00").has_value());
  CHECK_FALSE(BytesOfHex(" 00 ").has_value());
}

TEST_CASE("Text: a JSON string escapes quotes, backslashes and controls") {
  std::string out = ">";
  AppendJsonString("a\"\\\n\r\t\x01\x7f\0\u009b\u00a0\u00e9"sv, out);
  CHECK(out == ">\"a\\\"\\\\\\n\\r\\t\\u0001\\u007f\\u0000\\u009b\u00a0\u00e9\"");
}

TEST_CASE("Text: nothing that is shown can steer a terminal") {
  CHECK(OneLine("a\x1b[31m\nb\tc\r\x07\xff\u009b\u00e9"sv) ==
        "a\\x1b[31m\\nb\\tc\\r\\x07\\xff\\xc2\\x9b\u00e9");
  CHECK(ForTerminal("a\nb\tc\r\x1b"sv) == "a\nb\tc\\r\\x1b");
  Random random(kvd::test::Seed());
  for (int i = 0; i < 500; ++i) {
    const std::string shown = OneLine(test::RandomBytes(random, 40));
    CHECK(IsValidUtf8(shown));
    CHECK(shown.find_first_of("\x1b\n\r\t\x7f"s + '\0') == std::string::npos);
    CHECK(shown.find("\u009b") == std::string::npos);
  }
}

TEST_CASE("Text: a message quotes what is no plain word and cuts what is long") {
  CHECK(Quoted("plain:key/1") == "plain:key/1");
  CHECK(Quoted("\u00e9") == "\u00e9");
  CHECK(Quoted("two words") == "\"two words\"");
  CHECK(Quoted("a;b") == "\"a;b\"");
  CHECK(Quoted("") == "\"\"");
  CHECK(Quoted("\xff") == "\"\\xff\"");
  CHECK(Quoted(std::string(100, 'k')) == std::string(60, 'k') + "...");
  // Not in the middle of a character.
  CHECK(Quoted(std::string(59, 'k') + "\u4e2d\u4e2d") == std::string(59, 'k') + "...");
}

TEST_CASE("Text: width counts characters") {
  CHECK(DisplayWidth("") == 0);
  CHECK(DisplayWidth("a\u00e9\u4e2d") == 3);
}

}  // namespace
}  // namespace kvd::cli
