#include "client/cli/tsv_codec.h"

#include <string>
#include <string_view>

#include "common/base/random.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/random_bytes.h"

namespace kvd::cli {
namespace {

using namespace std::string_view_literals;

TEST_CASE("TsvCodec: any bytes round-trip as one line") {
  Random random(kvd::test::Seed());
  for (int i = 0; i < 2000; ++i) {
    const std::string key = test::RandomBytes(random, 30);
    const std::string value = test::RandomBytes(random, 60);
    std::string line;
    AppendTsvLine(key, value, {}, line);
    REQUIRE(line.find('\n') == line.size() - 1);
    REQUIRE(line.find('\r') == std::string::npos);
    line.pop_back();
    Item item;
    KVD_REQUIRE_OK(ParseTsvLine(line, item));
    REQUIRE(item.key == key);
    REQUIRE(item.value == value);
  }
}

TEST_CASE("TsvCodec: writes text as it is and everything else as escapes") {
  std::string out;
  AppendTsvLine("k\u00e9y", "a\tb\nc\rd\\e\0\x7f\u4e2d"sv, {}, out);
  CHECK(out == "k\u00e9y\ta\\tb\\nc\\rd\\\\e\\x00\\x7f\u4e2d\n");
  out.clear();
  AppendTsvLine("\xff\u00e9", "", {}, out);
  CHECK(out == "\\xff\\xc3\\xa9\t\n");
}

TEST_CASE("TsvCodec: a first key cannot be taken for a byte order mark or for JSON") {
  std::string out;
  AppendTsvLine("\xEF\xBB\xBFkey", "", {}, out);
  AppendTsvLine("{key", "", {}, out);
  CHECK(out == "\\xef\\xbb\\xbfkey\t\n\\x7bkey\t\n");
}

TEST_CASE("TsvCodec: expiry and user flags follow the value, where an item has them") {
  std::string out;
  AppendTsvLine("k", "v", {1'800'000'000'000'000, 7}, out);
  AppendTsvLine("k", "v", {0, 7}, out);
  CHECK(out == "k\tv\texpiry_unix_us=1800000000000000\tuser_flags=7\nk\tv\tuser_flags=7\n");
  Item item;
  KVD_REQUIRE_OK(ParseTsvLine("k\tv\texpiry_unix_us=1800000000000000\tuser_flags=7", item));
  CHECK(item.value == "v");
  CHECK(item.traits == ItemTraits{1'800'000'000'000'000, 7});
  for (const char* rest :
       {"expiry_unix_us=", "expiry_unix_us=x", "expiry_unix_us=1x", "user_flags=-1",
        "user_flags=4294967296", "expiry_unix_us=9223372036854775808", "user_flags=0"}) {
    KVD_REQUIRE_CODE(ParseTsvLine(std::string("k\tv\t") + rest, item), kInvalidArgument);
  }
  // In this order, and each once.
  KVD_REQUIRE_CODE(ParseTsvLine("k\tv\tuser_flags=7\texpiry_unix_us=1", item), kInvalidArgument);
  KVD_REQUIRE_CODE(ParseTsvLine("k\tv\tuser_flags=7\tuser_flags=7", item), kInvalidArgument);
}

TEST_CASE("TsvCodec: says what is wrong with a line, and where") {
  struct Case {
    std::string_view line;
    const char* error;
  };
  constexpr char kEscapes[] = "; write \\t, \\n, \\r, \\xNN, or \\\\ for a backslash";
  for (const Case& each : {
           Case{"no tab", "no TAB between key and value"},
           Case{"", "no TAB between key and value"},
           Case{"a\tb\tc", "a second TAB at byte 4; within a value write it as \\t"},
       }) {
    Item item;
    const absl::Status status = ParseTsvLine(each.line, item);
    KVD_REQUIRE_CODE(status, kInvalidArgument);
    CHECK(kvd::test::MessageOf(status) == each.error);
  }
  for (const auto& [line, byte] : {std::pair("a\\q\tb"sv, "2"), std::pair("a\tb\\"sv, "4"),
                                   std::pair("a\tb\\x1"sv, "4"), std::pair("a\t\\xg0"sv, "3")}) {
    Item item;
    const absl::Status status = ParseTsvLine(line, item);
    KVD_REQUIRE_CODE(status, kInvalidArgument);
    CHECK(kvd::test::MessageOf(status) ==
          std::string("no escape follows the backslash at byte ") + byte + kEscapes);
  }
}

TEST_CASE("TsvCodec: takes any bytes without harm") {
  Random random(kvd::test::Seed());
  for (int i = 0; i < 5000; ++i) {
    Item item;
    ParseTsvLine(test::RandomBytes(random, 50), item).IgnoreError();
  }
}

}  // namespace
}  // namespace kvd::cli
