#include "client/cli/item_format.h"

#include <optional>
#include <string>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::cli {
namespace {

TEST_CASE("ItemFormat: told by a file's name, by its first line, or by a word") {
  CHECK(FormatOfName("a/b.tsv") == ItemFormat::kTsv);
  CHECK(FormatOfName("b.jsonl") == ItemFormat::kJsonLines);
  CHECK(FormatOfName("b.ndjson") == ItemFormat::kJsonLines);
  CHECK(FormatOfName("b.json") == ItemFormat::kJsonLines);
  CHECK(FormatOfName("-") == std::nullopt);
  CHECK(FormatOfName("b.txt") == std::nullopt);
  CHECK(FormatOfLine("{\"key\"") == ItemFormat::kJsonLines);
  CHECK(FormatOfLine("a\tb") == ItemFormat::kTsv);
  CHECK(FormatOfWord("delimited") == ItemFormat::kDelimited);
  CHECK(FormatOfWord("auto") == std::nullopt);
}

TEST_CASE("ItemFormat: delimited splits at the first separator and changes nothing") {
  Item item;
  KVD_REQUIRE_OK(ParseItemLine(ItemFormat::kDelimited, ";", "0041;LATIN;Lu;\\t", item));
  CHECK(item.key == "0041");
  CHECK(item.value == "LATIN;Lu;\\t");
  KVD_REQUIRE_OK(ParseItemLine(ItemFormat::kDelimited, "::", "a:b::::c", item));
  CHECK(item.key == "a:b");
  CHECK(item.value == "::c");
  KVD_REQUIRE_OK(ParseItemLine(ItemFormat::kDelimited, ";", "a;", item));
  CHECK(item.value.empty());
  const absl::Status status = ParseItemLine(ItemFormat::kDelimited, ";", "abc", item);
  KVD_REQUIRE_CODE(status, kInvalidArgument);
  CHECK(kvd::test::MessageOf(status) == "no separator \";\"");
}

TEST_CASE("ItemFormat: writes and reads what its name says") {
  std::string out;
  AppendItemLine(ItemFormat::kTsv, "k", "v", {}, out);
  AppendItemLine(ItemFormat::kJsonLines, "k", "v", {}, out);
  CHECK(out == "k\tv\n{\"key\":\"k\",\"value\":\"v\"}\n");
  Item item;
  KVD_REQUIRE_OK(ParseItemLine(ItemFormat::kTsv, "", "k\tv", item));
  KVD_REQUIRE_OK(ParseItemLine(ItemFormat::kJsonLines, "", R"({"key":"k","value":"v"})", item));
  CHECK(item.value == "v");
}

TEST_CASE("ItemFormat: what one line says of an item is not left over for the next") {
  Item item;
  KVD_REQUIRE_OK(ParseItemLine(ItemFormat::kTsv, "", "k\tv\texpiry_unix_us=9\tuser_flags=8", item));
  CHECK(item.traits == ItemTraits{9, 8});
  KVD_REQUIRE_OK(ParseItemLine(ItemFormat::kTsv, "", "k\tv", item));
  CHECK(item.traits == ItemTraits{});
}

}  // namespace
}  // namespace kvd::cli
