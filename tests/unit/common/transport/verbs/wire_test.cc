// What goes over a connection besides frames: what is accepted, what is refused and with which
// words.
#include "common/transport/verbs/wire.h"

#include <cstring>
#include <vector>

#include "common/base/random.h"
#include "common/transport/verbs/tcp_exchange.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::verbs {
namespace {

Hello AHello() {
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.version_min = kProtocolVersion;
  hello.version_max = kProtocolVersion;
  hello.credits_wanted = 16;
  return hello;
}

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

TEST_CASE("ConnectData: what a client says is understood, also with the zeroes that rdma_cm adds") {
  const ConnectData data = MakeConnectData(AHello());
  ConnectData parsed;
  KVD_REQUIRE_OK(ParseConnectData(BytesOf(data), parsed));
  CHECK(parsed.credits_wanted == 16);
  std::vector<std::byte> padded(kPrivateBytesMax);
  std::memcpy(padded.data(), &data, sizeof(data));
  KVD_REQUIRE_OK(ParseConnectData(padded, parsed));
}

TEST_CASE("ConnectData: every malformation is refused") {
  ConnectData parsed;
  const ConnectData good = MakeConnectData(AHello());
  KVD_REQUIRE_CODE(ParseConnectData(BytesOf(good).first(23), parsed), kInvalidArgument);
  ConnectData bad = good;
  bad.magic ^= 1;
  KVD_REQUIRE_CODE(ParseConnectData(BytesOf(bad), parsed), kInvalidArgument);
  bad = good;
  bad.reserved = 1;
  KVD_REQUIRE_CODE(ParseConnectData(BytesOf(bad), parsed), kInvalidArgument);
  bad = good;
  bad.version_min = 9;
  KVD_REQUIRE_CODE(ParseConnectData(BytesOf(bad), parsed), kInvalidArgument);
  bad.version_max = 9;
  KVD_REQUIRE_CODE(ParseConnectData(BytesOf(bad), parsed), kFailedPrecondition);
}

TEST_CASE("RejectData: a rejection means what the same refusal by welcome would") {
  const auto status_of = [](WelcomeStatus status) {
    const RejectData data = MakeReject(status, "because");
    return RejectStatus(BytesOf(data));
  };
  KVD_REQUIRE_CODE(status_of(WelcomeStatus::kFull), kUnavailable);
  CHECK_THAT(test::MessageOf(status_of(WelcomeStatus::kFull)), Catch::Contains("because"));
  KVD_REQUIRE_CODE(status_of(WelcomeStatus::kWrongVersion), kFailedPrecondition);
  KVD_REQUIRE_CODE(status_of(WelcomeStatus::kNotAdmitted), kPermissionDenied);
  KVD_REQUIRE_CODE(status_of(WelcomeStatus::kAdmitted), kUnavailable);  // no rejection says that
  KVD_REQUIRE_CODE(RejectStatus({}), kUnavailable);
}

TEST_CASE(
    "ParseMessage: any bytes whatever give a message of a known kind and length, or an error") {
  Random random(test::Seed());
  size_t parsed_ok = 0;
  for (int i = 0; i < 100000; ++i) {
    std::vector<std::byte> bytes(random.Uniform(40));
    for (std::byte& byte : bytes)
      byte = static_cast<std::byte>(random.OneIn(2) ? 0 : random.Uniform(6));
    if (bytes.size() >= 8 && random.OneIn(2)) {
      const MessagePrefix prefix{
          static_cast<uint8_t>(random.Uniform(6)), {}, static_cast<uint32_t>(bytes.size() - 8)};
      std::memcpy(bytes.data(), &prefix, sizeof(prefix));
    }
    MessageKind kind{};
    std::span<const std::byte> body;
    if (!ParseMessage(bytes, kind, body).ok()) continue;
    ++parsed_ok;
    REQUIRE(body.size() == bytes.size() - 8);
    REQUIRE(kind >= MessageKind::kHello);
    REQUIRE(kind <= MessageKind::kAnswer);
  }
  CHECK(parsed_ok > 1000);
}

TEST_CASE(
    "CloseNotice: the reason arrives, cut to what fits, and a broken protocol is told apart") {
  const auto told = [](const absl::Status& reason) {
    const CloseNotice notice = MakeCloseNotice(reason);
    return CloseStatus(BytesOf(notice));
  };
  KVD_REQUIRE_CODE(told(absl::UnavailableError("bye")), kUnavailable);
  CHECK_THAT(test::MessageOf(told(absl::UnavailableError("bye"))), Catch::EndsWith("bye"));
  KVD_REQUIRE_CODE(told(absl::InvalidArgumentError("nonsense")), kDataLoss);
  KVD_REQUIRE_CODE(told(absl::UnavailableError(std::string(1000, 'x'))), kUnavailable);
  CloseNotice lying = MakeCloseNotice(absl::UnavailableError("x"));
  lying.text_bytes = ~0u;
  KVD_REQUIRE_CODE(CloseStatus(BytesOf(lying)), kUnavailable);
  KVD_REQUIRE_CODE(CloseStatus(BytesOf(lying).first(8)), kDataLoss);
}

TEST_CASE("ExchangeData: what cannot be is refused, a refusal is understood") {
  ExchangeData good{};
  good.magic = kExchangeMagic;
  good.version_min = good.version_max = kProtocolVersion;
  good.mtu = IBV_MTU_1024;
  ExchangeData parsed;
  KVD_REQUIRE_OK(ParseExchange(BytesOf(good), false, parsed));
  ExchangeData bad = good;
  bad.mtu = 0;
  KVD_REQUIRE_CODE(ParseExchange(BytesOf(bad), false, parsed), kInvalidArgument);
  bad = good;
  bad.qp_number = 1u << 24;
  KVD_REQUIRE_CODE(ParseExchange(BytesOf(bad), false, parsed), kInvalidArgument);
  bad = good;
  bad.gid_type = 3;
  KVD_REQUIRE_CODE(ParseExchange(BytesOf(bad), false, parsed), kInvalidArgument);
  bad = good;
  bad.version_min = bad.version_max = kProtocolVersion + 1;
  KVD_REQUIRE_CODE(ParseExchange(BytesOf(bad), false, parsed), kFailedPrecondition);
  bad = good;
  bad.magic = 0;
  KVD_REQUIRE_CODE(ParseExchange(BytesOf(bad), true, parsed), kInvalidArgument);
  KVD_REQUIRE_CODE(ParseExchange(BytesOf(good).first(100), true, parsed), kInvalidArgument);
  const ExchangeData refusal = RefuseExchange(WelcomeStatus::kFull, "no room");
  const absl::Status status = ParseExchange(BytesOf(refusal), true, parsed);
  KVD_REQUIRE_CODE(status, kUnavailable);
  CHECK_THAT(test::MessageOf(status), Catch::Contains("no room"));
  const ExchangeData device = RefuseExchange(WelcomeStatus::kInternal, "GIDs of two kinds");
  KVD_REQUIRE_CODE(ParseExchange(BytesOf(device), true, parsed), kUnavailable);
}

}  // namespace kvd::verbs
