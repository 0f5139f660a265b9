#include "common/transport/verbs/wire.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"
#include "common/protocol/handshake.h"

namespace kvd::verbs {

ConnectData MakeConnectData(const Hello& hello) {
  ConnectData data{};
  data.magic = kConnectMagic;
  data.version_min = hello.version_min;
  data.version_max = hello.version_max;
  data.feature_bits = hello.feature_bits;
  data.credits_wanted = hello.credits_wanted;
  return data;
}

absl::Status ParseConnectData(std::span<const std::byte> bytes, ConnectData& data) {
  // rdma_cm pads with zeroes, and how much it shows depends on the link: longer is fine, zeroes or
  // not.
  if (bytes.size() < sizeof(data)) return absl::InvalidArgumentError("connect data is too short");
  std::memcpy(&data, bytes.data(), sizeof(data));
  if (data.magic != kConnectMagic)
    return absl::InvalidArgumentError("connect data has a wrong magic");
  if (data.version_min > data.version_max)
    return absl::InvalidArgumentError("connect data has no version");
  if (kProtocolVersion < data.version_min || kProtocolVersion > data.version_max) {
    return absl::FailedPreconditionError(absl::StrCat("server speaks protocol ", kProtocolVersion,
                                                      ", client ", data.version_min, "..",
                                                      data.version_max));
  }
  if (data.reserved != 0)
    return absl::InvalidArgumentError("connect data has a reserved field that is not zero");
  return absl::OkStatus();
}

RejectData MakeReject(WelcomeStatus status, std::string_view why) {
  RejectData data{};
  data.magic = kConnectMagic;
  data.status = static_cast<uint32_t>(status);
  data.version = kProtocolVersion;
  data.version_min = kProtocolVersion;
  why.copy(data.text, sizeof(data.text) - 1);
  return data;
}

WelcomeStatus RefusalOf(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status)) return WelcomeStatus::kWrongVersion;
  if (absl::IsInvalidArgument(status)) return WelcomeStatus::kMalformed;
  if (absl::IsResourceExhausted(status)) return WelcomeStatus::kFull;  // it may be better later
  if (absl::IsPermissionDenied(status)) return WelcomeStatus::kNotAdmitted;
  return WelcomeStatus::kInternal;
}

absl::Status RejectStatus(std::span<const std::byte> bytes) {
  RejectData data{};
  if (bytes.size() >= sizeof(data)) std::memcpy(&data, bytes.data(), sizeof(data));
  if (data.magic != kConnectMagic ||
      data.status == static_cast<uint32_t>(WelcomeStatus::kAdmitted)) {
    return absl::UnavailableError("rejected by something that is not a kvd");
  }
  // The same words as a refusal by Welcome.
  Welcome refusal = MakeRefusal(static_cast<WelcomeStatus>(data.status),
                                std::string_view(data.text, strnlen(data.text, sizeof(data.text))));
  refusal.version = data.version;
  refusal.version_min = data.version_min;
  Welcome ignored;
  return ParseWelcome(std::as_bytes(std::span(&refusal, 1)), ignored);
}

absl::Status ParseMessage(std::span<const std::byte> message, MessageKind& kind,
                          std::span<const std::byte>& body) {
  MessagePrefix prefix;
  if (message.size() < sizeof(prefix))
    return absl::InvalidArgumentError("a message without its prefix");
  std::memcpy(&prefix, message.data(), sizeof(prefix));
  body = message.subspan(sizeof(prefix));
  if (prefix.body_bytes != body.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", body.size(), " bytes that says ", prefix.body_bytes));
  }
  if (prefix.kind < static_cast<uint8_t>(MessageKind::kHello) ||
      prefix.kind > static_cast<uint8_t>(MessageKind::kAnswer) || prefix.reserved[0] != 0 ||
      prefix.reserved[1] != 0 || prefix.reserved[2] != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a message of unknown kind ", prefix.kind));
  }
  kind = static_cast<MessageKind>(prefix.kind);
  return absl::OkStatus();
}

CloseNotice MakeCloseNotice(const absl::Status& reason) {
  CloseNotice notice{};
  notice.code = static_cast<uint32_t>(reason.code());
  notice.text_bytes =
      static_cast<uint32_t>(ToStd(reason.message()).copy(notice.text, sizeof(notice.text)));
  return notice;
}

absl::Status CloseStatus(std::span<const std::byte> body) {
  CloseNotice notice;
  if (body.size() != sizeof(notice))
    return absl::DataLossError("the server sent a closing notice that is none");
  std::memcpy(&notice, body.data(), sizeof(notice));
  const absl::string_view text(notice.text,
                               std::min<size_t>(notice.text_bytes, sizeof(notice.text)));
  const std::string message = absl::StrCat("the server closed the session: ", text);
  // What the server says about a peer's fault is not for the application to act on.
  if (notice.code == static_cast<uint32_t>(absl::StatusCode::kInvalidArgument))
    return absl::DataLossError(message);
  return absl::UnavailableError(message);
}

}  // namespace kvd::verbs
