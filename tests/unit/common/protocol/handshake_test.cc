// Hello and Welcome: each refusal has its code and says why; nothing that is short, foreign or out
// of range is believed.
#include "common/protocol/handshake.h"

#include <cstring>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/layout/frames.h"
#include "common/layout/slot.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;

template <typename T>
std::span<const std::byte> Bytes(const T& object, size_t bytes = sizeof(T)) {
  return std::as_bytes(std::span(&object, 1)).first(bytes);
}

Hello GoodHello() {
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.version_min = 1;
  hello.version_max = kProtocolVersion + 1;
  hello.client_id = 42;
  return hello;
}

Welcome GoodWelcome() {
  Welcome welcome{};
  welcome.magic = kWelcomeMagic;
  welcome.version = kProtocolVersion;
  welcome.version_min = kProtocolVersion;
  welcome.incarnation = 7;
  welcome.region_bytes = 64 << 20;
  welcome.bucket_bytes = 1024;
  welcome.shard_count = 2;
  welcome.directory_entries = 64;
  welcome.directory_offset = 4096;
  welcome.credits = 16;
  welcome.role = static_cast<uint32_t>(Role::kReadWrite);
  welcome.frame_bytes = kFrameBytesDefault;
  welcome.max_value_bytes = 64 << 20;
  return welcome;
}

TEST_CASE("ParseHello: a good one comes back whole") {
  Hello hello;
  KVD_REQUIRE_OK(ParseHello(Bytes(GoodHello()), hello));
  const Hello expected = GoodHello();
  CHECK(std::memcmp(&hello, &expected, sizeof(hello)) == 0);
}

TEST_CASE("ParseHello: what is not a Hello is InvalidArgument and says what is wrong") {
  struct Bad {
    void (*spoil)(Hello&);
    const char* message;
  };
  const Bad bad = GENERATE(values<Bad>({
      {[](Hello& h) { h.magic ^= 1; }, "magic"},
      {[](Hello& h) { h.version_min = kProtocolVersion + 2; }, "empty version range"},
      {[](Hello& h) { h.reserved0 = 1; }, "reserved"},
      {[](Hello& h) { h.client_id = 0; }, "client id"},
  }));
  Hello hello = GoodHello();
  bad.spoil(hello);
  Hello parsed;
  const absl::Status status = ParseHello(Bytes(hello), parsed);
  KVD_REQUIRE_CODE(status, kInvalidArgument);
  CHECK_THAT(MessageOf(status), Contains(bad.message));
}

TEST_CASE(
    "ParseHello: no common version is FailedPrecondition, whatever the rest of the frame looks "
    "like") {
  Hello hello = GoodHello();
  const bool newer = GENERATE(true, false);
  hello.version_min = newer ? kProtocolVersion + 1 : 0;
  hello.version_max = newer ? kProtocolVersion + 5 : kProtocolVersion - 1;
  const std::string range =
      std::to_string(hello.version_min) + ".." + std::to_string(hello.version_max);
  for (const size_t bytes : {size_t{16}, size_t{40}, sizeof(Hello)}) {
    Hello parsed;
    const absl::Status status = ParseHello(Bytes(hello, bytes), parsed);
    KVD_REQUIRE_CODE(status, kFailedPrecondition);
    CHECK_THAT(MessageOf(status), Contains(range));
    CHECK_THAT(MessageOf(status), Contains("speaks protocol " + std::to_string(kProtocolVersion)));
  }
  std::vector<std::byte> longer(200);
  std::memcpy(longer.data(), &hello, sizeof(hello));
  Hello parsed;
  KVD_REQUIRE_CODE(ParseHello(longer, parsed), kFailedPrecondition);
}

TEST_CASE("ParseHello: no other length is accepted") {
  std::vector<std::byte> frame(200);
  const Hello hello = GoodHello();
  std::memcpy(frame.data(), &hello, sizeof(hello));
  for (size_t bytes = 0; bytes <= frame.size(); ++bytes) {
    if (bytes == sizeof(Hello)) continue;
    Hello parsed;
    KVD_REQUIRE_CODE(ParseHello(std::vector<std::byte>(
                                    frame.begin(), frame.begin() + static_cast<ptrdiff_t>(bytes)),
                                parsed),
                     kInvalidArgument);
  }
}

TEST_CASE("ParseWelcome: a good one comes back whole, with its geometry") {
  Welcome welcome;
  KVD_REQUIRE_OK(ParseWelcome(Bytes(GoodWelcome()), welcome));
  const Welcome expected = GoodWelcome();
  CHECK(std::memcmp(&welcome, &expected, sizeof(welcome)) == 0);
  const Geometry geometry = GeometryOf(welcome);
  CHECK(geometry.incarnation == 7);
  CHECK(geometry.region_bytes == 64 << 20);
  CHECK(geometry.directory_offset == 4096);
  CHECK(geometry.directory_entries == 64);
  CHECK(geometry.bucket_bytes == 1024);
  CHECK(geometry.shard_count == 2);
}

TEST_CASE("ParseWelcome: each refusal has its code and the server's text") {
  struct Refusal {
    WelcomeStatus status;
    absl::StatusCode code;
  };
  const Refusal refusal = GENERATE(values<Refusal>({
      {WelcomeStatus::kMalformed, absl::StatusCode::kInternal},
      {WelcomeStatus::kFull, absl::StatusCode::kUnavailable},
      {WelcomeStatus::kNotAdmitted, absl::StatusCode::kPermissionDenied},
      {WelcomeStatus::kShuttingDown, absl::StatusCode::kUnavailable},
      {WelcomeStatus::kInternal, absl::StatusCode::kInternal},
      {WelcomeStatus::kTooLate, absl::StatusCode::kUnavailable},
      {static_cast<WelcomeStatus>(99), absl::StatusCode::kInternal},
  }));
  const Welcome sent = MakeRefusal(refusal.status, "because of this");
  Welcome welcome;
  const absl::Status status = ParseWelcome(Bytes(sent), welcome);
  CHECK(status.code() == refusal.code);
  CHECK_THAT(MessageOf(status), Contains("because of this"));
}

TEST_CASE(
    "ParseWelcome: a refusal for its version names both sides' versions, also in a shorter frame") {
  Welcome sent = MakeRefusal(WelcomeStatus::kWrongVersion, "ignored");
  sent.version = 9;
  sent.version_min = 5;
  for (const size_t bytes : {size_t{16}, size_t{100}, sizeof(Welcome)}) {
    Welcome welcome;
    const absl::Status status = ParseWelcome(Bytes(sent, bytes), welcome);
    KVD_REQUIRE_CODE(status, kFailedPrecondition);
    CHECK_THAT(MessageOf(status), Contains("speaks protocol 5 to 9"));
    CHECK_THAT(MessageOf(status), Contains("this client " + std::to_string(kProtocolVersion)));
  }
}

TEST_CASE(
    "ParseWelcome: an admission with numbers that cannot be is DataLoss and names the number") {
  struct Bad {
    void (*spoil)(Welcome&);
    const char* message;
  };
  const Bad bad = GENERATE(values<Bad>({
      {[](Welcome& w) { w.magic ^= 1; }, "magic"},
      {[](Welcome& w) { w.version = kProtocolVersion + 1; }, "protocol version 6"},
      {[](Welcome& w) { w.frame_bytes = kFrameBytesMin - 1; }, "frames of"},
      {[](Welcome& w) { w.frame_bytes = kFrameBytesMax + 1; }, "frames of"},
      {[](Welcome& w) { w.credits = 0; }, "credit"},
      {[](Welcome& w) { w.max_value_bytes = kItemBytesMax + 1; }, "values of up to"},
      {[](Welcome& w) { w.max_value_bytes = ~uint64_t{0}; }, "values of up to"},
      {[](Welcome& w) { w.incarnation = 0; }, "incarnation"},
      {[](Welcome& w) { w.bucket_bytes = 100; }, "bucket of 100 bytes"},
      {[](Welcome& w) { w.shard_count = 0; }, "0 shards"},
      {[](Welcome& w) { w.region_bytes = 0; }, "region of 0 bytes"},
      {[](Welcome& w) { w.directory_entries = 1; }, "directory of 1 entries"},
      {[](Welcome& w) { w.directory_offset = 1; }, "at 1 "},
  }));
  Welcome sent = GoodWelcome();
  bad.spoil(sent);
  Welcome welcome;
  const absl::Status status = ParseWelcome(Bytes(sent), welcome);
  KVD_REQUIRE_CODE(status, kDataLoss);
  CHECK_THAT(MessageOf(status), Contains(bad.message));
}

TEST_CASE("ParseWelcome: no other length is accepted") {
  std::vector<std::byte> frame(300);
  const Welcome sent = GoodWelcome();
  std::memcpy(frame.data(), &sent, sizeof(sent));
  for (size_t bytes = 0; bytes <= frame.size(); ++bytes) {
    if (bytes == sizeof(Welcome)) continue;
    Welcome welcome;
    KVD_REQUIRE_CODE(ParseWelcome(std::vector<std::byte>(
                                      frame.begin(), frame.begin() + static_cast<ptrdiff_t>(bytes)),
                                  welcome),
                     kDataLoss);
  }
}

TEST_CASE("ParseWelcome: a text without an end is cut at the field's") {
  Welcome sent = MakeRefusal(WelcomeStatus::kFull, {});
  std::memset(sent.text, 'x', sizeof(sent.text));
  Welcome welcome;
  CHECK_THAT(MessageOf(ParseWelcome(Bytes(sent), welcome)),
             Catch::Matchers::EndsWith(" " + std::string(64, 'x')));
}

TEST_CASE("MakeRefusal: cuts the reason to its field, and needs none") {
  CHECK(MakeRefusal(WelcomeStatus::kFull, {}).text[0] == 0);
  const Welcome welcome = MakeRefusal(WelcomeStatus::kFull, std::string(500, 'x'));
  CHECK(strnlen(welcome.text, sizeof(welcome.text)) == sizeof(welcome.text) - 1);
  CHECK(welcome.status == static_cast<uint32_t>(WelcomeStatus::kFull));
  CHECK(welcome.incarnation == 0);
  CHECK(welcome.region_address == 0);
  CHECK(welcome.region_key == 0);
}

TEST_CASE("Handshake: random and flipped bytes never crash") {
  Random random(Seed());
  for (int i = 0; i < 200'000; ++i) {
    Hello hello = GoodHello();
    Welcome welcome = GoodWelcome();
    for (uint64_t flips = random.Uniform(4); flips > 0; --flips) {
      reinterpret_cast<uint8_t*>(&hello)[random.Uniform(sizeof(hello))] ^=
          static_cast<uint8_t>(random.Next());
      reinterpret_cast<uint8_t*>(&welcome)[random.Uniform(sizeof(welcome))] ^=
          static_cast<uint8_t>(random.Next());
    }
    Hello parsed_hello;
    Welcome parsed;
    (void)ParseHello(Bytes(hello, random.Uniform(sizeof(hello) + 1)), parsed_hello);
    if (ParseWelcome(
            Bytes(welcome, random.OneIn(2) ? sizeof(welcome) : random.Uniform(sizeof(welcome))),
            parsed)
            .ok()) {
      if (!CheckGeometry(GeometryOf(parsed)).ok()) FAIL("admitted with a geometry that cannot be");
    }
  }
}

}  // namespace
}  // namespace kvd::test
