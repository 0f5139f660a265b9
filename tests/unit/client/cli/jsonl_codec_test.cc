#include "client/cli/jsonl_codec.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/base/random.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/cli/random_bytes.h"

namespace kvd::cli {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

TEST_CASE("JsonlCodec: any bytes round-trip as one line, which is JSON") {
  Random random(kvd::test::Seed());
  for (int i = 0; i < 2000; ++i) {
    const std::string key = test::RandomBytes(random, 30);
    const std::string value = test::RandomBytes(random, 60);
    std::string line;
    AppendJsonLine(key, value, {}, line);
    REQUIRE(line.find('\n') == line.size() - 1);
    REQUIRE(nlohmann::json::accept(line));
    line.pop_back();
    Item item;
    KVD_REQUIRE_OK(ParseJsonLine(line, item));
    REQUIRE(item.key == key);
    REQUIRE(item.value == value);
  }
}

TEST_CASE("JsonlCodec: text is a string, other bytes are base64, or hexadecimal where asked for") {
  std::string out;
  AppendJsonLine("k\u00e9y", "text\0b"sv, {}, out);
  AppendJsonLine("\xff", "\xfe\xfd", {}, out);
  CHECK(out ==
        "{\"key\":\"k\u00e9y\",\"value\":\"text\\u0000b\"}\n"
        "{\"key_base64\":\"/w==\",\"value_base64\":\"/v0=\"}\n");
  out.clear();
  AppendJsonBytes("key", "ab", ByteText::kHex, out);
  CHECK(out == "\"key_hex\":\"6162\"");
}

TEST_CASE("JsonlCodec: no line is much more than twice as long as its item") {
  Random random(kvd::test::Seed());
  for (int i = 0; i < 200; ++i) {
    std::string value(1000, 'x');
    for (char& byte : value) {
      if (random.Uniform(1000) < static_cast<uint64_t>(i) * 5) {
        byte = "\0\x01\x7f\n\"\\"[random.Uniform(6)];
      }
    }
    std::string line;
    AppendJsonLine("k", value, {}, line);
    REQUIRE(line.size() <= 2 * value.size() + 100);
    line.pop_back();
    Item item;
    KVD_REQUIRE_OK(ParseJsonLine(line, item));
    REQUIRE(item.value == value);
  }
}

TEST_CASE("JsonlCodec: takes fields in any order and form, and passes over others") {
  for (
      const std::string_view line : {
          R"({"key":"a","value":"b"})"sv,
          R"(  { "value" : "b" , "key" : "a" }  )"sv,
          R"({"version":7,"key":"a","more":{"key":1,"value":[{"key":"x"}]},"value":"b","n":null})"sv,
          R"({"key_hex":"61","value_base64":"Yg=="})"sv,
          R"({"key":"\u0061","value":"b","KEY":"no"})"sv,
      }) {
    INFO(line);
    Item item;
    KVD_REQUIRE_OK(ParseJsonLine(line, item));
    CHECK(item.key == "a");
    CHECK(item.value == "b");
  }
}

TEST_CASE("JsonlCodec: says what is wrong with a line") {
  struct Case {
    std::string_view line;
    const char* error;
  };
  for (const Case& each : {
           Case{R"({"value":"b"})", "no field \"key\""},
           Case{R"({"key":"a"})", "no field \"value\""},
           Case{R"({"key":"a","value":5})",
                "field value is a number, not a string; put it in quotes"},
           Case{R"({"key":"a","value":{"b":1}})",
                "field value is an object, not a string; put it in quotes"},
           Case{R"({"key":["a"],"value":"b"})",
                "field key is an array, not a string; put it in quotes"},
           Case{R"({"key":null,"value":"b"})", "field key is null, not a string; put it in quotes"},
           Case{R"({"key":"a","key":"c","value":"b"})", "a second key in field key"},
           Case{R"({"key":"a","value":"b","value_hex":"00"})", "a second value in field value_hex"},
           Case{R"({"key":"a","value_base64":"?"})", "field value_base64 is not base64"},
           Case{R"({"key_hex":"0","value":""})", "field key_hex is not hexadecimal"},
           Case{R"(["a","b"])", "an array, not an object {\"key\":...,\"value\":...}"},
           Case{R"("a")", "a string, not an object {\"key\":...,\"value\":...}"},
           Case{R"(17)", "a number, not an object {\"key\":...,\"value\":...}"},
           Case{R"({"key":"a","value":"b"} x)", "not JSON at byte 25"},
           Case{R"({"key":"a","value":"b)", "not JSON at byte 22"},
           Case{"{\"key\":\"\xff\",\"value\":\"\"}", "not JSON at byte 9"},
           Case{R"({"key":"\ud800","value":""})", "not JSON at byte 15"},
           Case{"", "not JSON at byte 1"},
       }) {
    INFO(each.line);
    Item item;
    const absl::Status status = ParseJsonLine(each.line, item);
    KVD_REQUIRE_CODE(status, kInvalidArgument);
    CHECK(kvd::test::MessageOf(status) == each.error);
  }
}

TEST_CASE("JsonlCodec: a line however deep costs no stack") {
  const size_t depth = 1'000'000;
  const std::string deep =
      R"({"key":"a","value":"b","x":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  Item item;
  KVD_REQUIRE_OK(ParseJsonLine(deep, item));
  KVD_REQUIRE_CODE(ParseJsonLine(std::string(depth, '{'), item), kInvalidArgument);
}

TEST_CASE("JsonlCodec: takes any bytes without harm") {
  Random random(kvd::test::Seed());
  for (int i = 0; i < 5000; ++i) {
    std::string line;
    AppendJsonLine(test::RandomBytes(random, 10), test::RandomBytes(random, 10), {}, line);
    for (uint64_t flips = random.Uniform(4); flips > 0; --flips) {
      line[random.Uniform(line.size())] = static_cast<char>(random.Uniform(256));
    }
    Item item;
    ParseJsonLine(line, item).IgnoreError();
  }
}

TEST_CASE("JsonlCodec: expiry and user flags, as numbers or where a double would change them") {
  std::string out;
  AppendJsonLine("k", "v", {1'800'000'000'000'000, 7}, out);
  AppendJsonLine("k", "v", {INT64_MAX, 0}, out);
  CHECK(out ==
        "{\"key\":\"k\",\"value\":\"v\",\"user_flags\":7,\"expiry_unix_us\":1800000000000000}\n"
        "{\"key\":\"k\",\"value\":\"v\",\"expiry_unix_us\":\"9223372036854775807\"}\n");
  Item item;
  KVD_REQUIRE_OK(ParseJsonLine(
      R"({"expiry_unix_us":1800000000000000,"key":"k","value":"v","user_flags":7})", item));
  CHECK(item.traits == ItemTraits{1'800'000'000'000'000, 7});
  KVD_REQUIRE_OK(
      ParseJsonLine(R"({"key":"k","value":"v","expiry_unix_us":"9223372036854775807"})", item));
  CHECK(item.traits.expiry_unix_us == INT64_MAX);
  for (const char* trait :
       {R"("user_flags":-1)", R"("user_flags":4294967296)", R"("user_flags":1.5)",
        R"("user_flags":"x")", R"("user_flags":null)", R"("user_flags":[1])",
        R"("expiry_unix_us":"9223372036854775808")", R"("user_flags":1,"user_flags":1)"}) {
    KVD_REQUIRE_CODE(ParseJsonLine(std::string(R"({"key":"k","value":"v",)") + trait + "}", item),
                     kInvalidArgument);
  }
  const absl::Status soon =
      ParseJsonLine(R"({"key":"k","value":"v","expiry_unix_us":"soon"})", item);
  KVD_REQUIRE_CODE(soon, kInvalidArgument);
  CHECK(kvd::test::MessageOf(soon) ==
        "field expiry_unix_us is no whole number of 63 bits; write microseconds of Unix time");
}

}  // namespace
}  // namespace kvd::cli
