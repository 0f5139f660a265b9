#include "client/cli/table.h"

#include "tests/support/test.h"

namespace kvd::cli {
namespace {

TEST_CASE("Table: columns are as wide as what is in them, numbers stand at the right") {
  CHECK(FormatTable({"KEY", "N"}, {{"a", "5"}, {"\u00e9\u00e9\u00e9\u00e9", "-12.5"}}) ==
        "+------+-------+\n"
        "| KEY  | N     |\n"
        "+------+-------+\n"
        "| a    |     5 |\n"
        "| \u00e9\u00e9\u00e9\u00e9 | -12.5 |\n"
        "+------+-------+\n");
  CHECK(FormatTable({"KEY"}, {}) == "+-----+\n| KEY |\n+-----+\n");
}

TEST_CASE("Table: a last column that is too wide goes on below") {
  CHECK(FormatTable({"N", "V"}, {{"a", "0123456789\u00fcbcd"}, {"b", ""}}, 19) ==
        "+---+-------------+\n"
        "| N | V           |\n"
        "+---+-------------+\n"
        "| a | 0123456789\u00fc |\n"
        "|   | bcd         |\n"
        "| b |             |\n"
        "+---+-------------+\n");
  // As it is where hardly a word would fit.
  CHECK(FormatTable({"N", "V"}, {{"a", "0123456789"}}, 10) ==
        FormatTable({"N", "V"}, {{"a", "0123456789"}}));
}

TEST_CASE("Table: aligned pairs") {
  CHECK(FormatAligned({{"a", "1"}, {"long", "two"}}) == "a     1\nlong  two\n");
  CHECK(FormatAligned({}).empty());
}

TEST_CASE("Table: a number is what JSON takes for one") {
  for (const char* yes : {"0", "7", "-3", "0.5", "18446744073709551615", "-0.25"}) {
    INFO(yes);
    CHECK(IsNumber(yes));
  }
  for (const char* no : {"", "-", "01", "1.", ".5", "1e5", "0x1", "1 ", "nan", "--1", "1.2.3"}) {
    INFO(no);
    CHECK_FALSE(IsNumber(no));
  }
}

}  // namespace
}  // namespace kvd::cli
