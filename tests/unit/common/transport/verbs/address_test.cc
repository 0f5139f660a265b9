// Addresses as users write them.
#include "common/transport/verbs/address.h"

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::verbs {

TEST_CASE("ParseHostPort: names, IPv4, IPv6 with and without zone, and all addresses") {
  const struct {
    const char* text;
    const char* host;
    uint16_t port;
  } kCases[] = {
      {"node7:7711", "node7", 7711},
      {"10.0.0.1:1", "10.0.0.1", 1},
      {"[fd77::2]:7711", "fd77::2", 7711},
      {"[fe80::1%eth0]:65535", "fe80::1%eth0", 65535},
      {"*:7711", "", 7711},
      {":0", "", 0},
      {"[10.77.0.2]:5", "10.77.0.2", 5},
  };
  for (const auto& wanted : kCases) {
    CAPTURE(wanted.text);
    const auto parsed = ParseHostPort(wanted.text);
    KVD_REQUIRE_OK(parsed);
    CHECK(parsed->host == wanted.host);
    CHECK(parsed->port == wanted.port);
  }
}

TEST_CASE("ParseHostPort: anything else is refused and named") {
  for (const char* text : {"", "host", "host:", "host:x", "host:65536", "host:-1", "host: 1",
                           "fe80::1:7711", "[]:1", "[fe80::1:7711", "fe80::1]:7711", "host:1 "}) {
    CAPTURE(text);
    const auto parsed = ParseHostPort(text);
    KVD_REQUIRE_CODE(parsed, kInvalidArgument);
    CHECK_THAT(test::MessageOf(parsed), Catch::Contains(text));
  }
}

TEST_CASE("Resolve: numeric addresses need nobody; a name that is none is not found") {
  const auto v4 = Resolve(HostPort{"127.0.0.1", 7711}, false);
  KVD_REQUIRE_OK(v4);
  CHECK(ToText(v4->front().get()) == "127.0.0.1:7711");
  const auto v6 = Resolve(HostPort{"::1", 7711}, false);
  KVD_REQUIRE_OK(v6);
  CHECK(ToText(v6->front().get()) == "[::1]:7711");
  KVD_REQUIRE_OK(Resolve(HostPort{"", 7711}, true));
  CHECK_FALSE(Resolve(HostPort{"256.256.256.256", 1}, false).ok());
}

}  // namespace kvd::verbs
