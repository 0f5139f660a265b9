// Sizes parse exactly or fail with a message that names the value and the form.
#include "common/base/units.h"

#include <cstdint>
#include <string>

#include "common/base/random.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("ParseBytes: numbers and suffixes in either case") {
  struct Expected {
    const char* text;
    uint64_t size_bytes;
  };
  for (const Expected& expected : {
           Expected{"0", 0},
           Expected{"1048576", 1048576},
           Expected{"512k", 512 * kKiB},
           Expected{"64M", 64 * kMiB},
           Expected{"4g", 4 * kGiB},
           Expected{"4G", 4 * kGiB},
           Expected{"1t", kTiB},
           Expected{"007m", 7 * kMiB},
           Expected{"18446744073709551615", UINT64_MAX},
           Expected{"16777215t", 16777215 * kTiB},
       }) {
    CAPTURE(expected.text);
    const absl::StatusOr<uint64_t> parsed = ParseBytes(expected.text);
    KVD_REQUIRE_OK(parsed);
    CHECK(*parsed == expected.size_bytes);
  }
}

TEST_CASE("ParseBytes: anything else is named together with the accepted form") {
  for (const char* text :
       {"", "k", "-1", "+1", " 1", "1 ", "1 m", "1.5g", "0x10", "4gb", "4gg", "64x", "g4", "nan"}) {
    CAPTURE(text);
    const absl::StatusOr<uint64_t> parsed = ParseBytes(text);
    KVD_REQUIRE_CODE(parsed, kInvalidArgument);
    CHECK_THAT(test::MessageOf(parsed), Contains("\"" + std::string(text) + "\""));
    CHECK_THAT(test::MessageOf(parsed), Contains("suffix k, m, g or t"));
  }
}

TEST_CASE("ParseBytes: 2^64 and more is out of range, not wrapped") {
  for (const char* text : {"18446744073709551616", "16777216t", "17179869184g",
                           "99999999999999999999999999", "18446744073709551615k"}) {
    CAPTURE(text);
    KVD_REQUIRE_CODE(ParseBytes(text), kOutOfRange);
  }
}

TEST_CASE("ParseBytes: bytes that do not print are escaped in the message") {
  CHECK_THAT(test::MessageOf(ParseBytes("1\n\x1b")), Contains("\\n\\x1b"));
}

TEST_CASE("FormatBytes: the largest unit, one decimal if needed") {
  CHECK(FormatBytes(0) == "0 B");
  CHECK(FormatBytes(1023) == "1023 B");
  CHECK(FormatBytes(64 * kMiB) == "64 MiB");
  CHECK(FormatBytes(1536 * kMiB) == "1.5 GiB");
  CHECK(FormatBytes(kTiB) == "1 TiB");
  CHECK(FormatBytes(UINT64_MAX) == "16777216.0 TiB");
}

TEST_CASE("ParseBytes: reads back every decimal number") {
  Random random(test::Seed());
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = random.Next() >> random.Uniform(64);
    const absl::StatusOr<uint64_t> parsed = ParseBytes(std::to_string(value));
    KVD_REQUIRE_OK(parsed);
    REQUIRE(*parsed == value);
  }
}

}  // namespace
}  // namespace kvd
