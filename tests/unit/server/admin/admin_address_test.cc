#include "server/admin/admin_address.h"

#include <string>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {

TEST_CASE("Admin address: a port alone is loopback; hosts are addresses") {
  const auto text_of = [](std::string_view text) {
    const auto address = ParseAdminAddress(text);
    return address.ok() ? address->ToText() : "none";
  };
  CHECK(text_of("7712") == "127.0.0.1:7712");
  CHECK(text_of(":7712") == "127.0.0.1:7712");
  CHECK(text_of("localhost:1") == "127.0.0.1:1");
  CHECK(text_of("10.1.2.3:65535") == "10.1.2.3:65535");
  CHECK(text_of("*:80") == "0.0.0.0:80");
  CHECK(text_of("[::1]:7712") == "[::1]:7712");
  CHECK(text_of("[::]:0") == "[::]:0");
  for (const char* wrong : {"", ":", "x", "65536", "-1", "+1", "1 ", " 1", "localhost",
                            "localhost:", "::1:7712", "[::1]", "[]:1", "example.org:1", "127.1:80",
                            "127.0.0.1.evil.org:80", "1:2:3", "[10.0.0.1]:1"}) {
    CAPTURE(wrong);
    KVD_REQUIRE_CODE(ParseAdminAddress(wrong), kInvalidArgument);
  }
}

TEST_CASE("Admin address: what is loopback and what is not") {
  const auto is_loopback = [](std::string_view text) {
    return ParseAdminAddress(text)->IsLoopback();
  };
  CHECK(is_loopback("1"));
  CHECK(is_loopback("127.255.0.1:1"));
  CHECK(is_loopback("[::1]:1"));
  CHECK_FALSE(is_loopback("*:1"));
  CHECK_FALSE(is_loopback("[::]:1"));
  CHECK_FALSE(is_loopback("10.0.0.1:1"));
  CHECK_FALSE(is_loopback("[::ffff:10.0.0.1]:1"));
}

TEST_CASE("Admin address: listens at any free port, and a port that is taken is named") {
  const auto first = ListenAt(*ParseAdminAddress("0"));
  KVD_REQUIRE_OK(first);
  CHECK_THAT(first->address.ToText(), Catch::StartsWith("127.0.0.1:"));
  CHECK(first->address.ToText() != "127.0.0.1:0");
  const auto second = ListenAt(first->address);
  KVD_REQUIRE_CODE(second, kAlreadyExists);
  CHECK_THAT(MessageOf(second), Catch::Contains(first->address.ToText() + " is in use"));
  const auto foreign = ListenAt(*ParseAdminAddress("192.0.2.1:0"));
  KVD_REQUIRE_CODE(foreign, kUnavailable);
  CHECK_THAT(MessageOf(foreign), Catch::Contains("no address of this machine"));
}

}  // namespace kvd::test
