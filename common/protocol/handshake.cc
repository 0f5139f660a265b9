#include "common/protocol/handshake.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"
#include "common/layout/frames.h"
#include "common/layout/slot.h"

namespace kvd {
namespace {

absl::string_view TextOf(const Welcome& welcome) {
  return absl::string_view(welcome.text, strnlen(welcome.text, sizeof(welcome.text)));
}

absl::Status RefusalStatus(const Welcome& welcome) {
  const absl::string_view text = TextOf(welcome);
  switch (static_cast<WelcomeStatus>(welcome.status)) {
    case WelcomeStatus::kAdmitted:
      return absl::OkStatus();
    case WelcomeStatus::kWrongVersion:
      return absl::FailedPreconditionError(
          absl::StrCat("the server speaks protocol ", welcome.version_min, " to ", welcome.version, ", this client ",
                       kProtocolVersion, "; upgrade the older side"));
    case WelcomeStatus::kFull:
      return absl::UnavailableError(absl::StrCat(kRefusedAsFull, text));
    case WelcomeStatus::kShuttingDown:
      return absl::UnavailableError(absl::StrCat("the server is shutting down: ", text));
    case WelcomeStatus::kNotAdmitted:
      return absl::PermissionDeniedError(absl::StrCat("not admitted: ", text));
    case WelcomeStatus::kTooLate:
      return absl::UnavailableError(absl::StrCat("too late: ", text, "; try again"));
    case WelcomeStatus::kMalformed:
    case WelcomeStatus::kInternal:
      break;
  }
  return absl::InternalError(absl::StrCat("refused with status ", welcome.status, ": ", text));
}

}  // namespace

absl::Status ParseHello(std::span<const std::byte> frame, Hello& hello) {
  // Magic and versions stand in the first 16 bytes of every version's Hello, so they are judged before the length.
  if (frame.size() < 16) return absl::InvalidArgumentError("hello is shorter than 16 bytes");
  hello = {};
  std::memcpy(&hello, frame.data(), std::min(frame.size(), sizeof(hello)));
  if (hello.magic != kHelloMagic) return absl::InvalidArgumentError("hello has a wrong magic");
  if (hello.version_min > hello.version_max) return absl::InvalidArgumentError("hello has an empty version range");
  if (kProtocolVersion < hello.version_min || kProtocolVersion > hello.version_max) {
    return absl::FailedPreconditionError(absl::StrCat("server speaks protocol ", kProtocolVersion, ", client ",
                                                      hello.version_min, "..", hello.version_max));
  }
  if (frame.size() != sizeof(Hello)) return absl::InvalidArgumentError("hello has a wrong length");
  if (hello.reserved0 != 0) return absl::InvalidArgumentError("hello has a reserved field that is not zero");
  if (hello.client_id == 0) return absl::InvalidArgumentError("hello has client id zero");
  return absl::OkStatus();
}

Welcome MakeRefusal(WelcomeStatus status, std::string_view why) {
  Welcome welcome{};
  welcome.magic = kWelcomeMagic;
  welcome.version = kProtocolVersion;
  welcome.version_min = kProtocolVersion;
  welcome.status = static_cast<uint32_t>(status);
  why.copy(welcome.text, sizeof(welcome.text) - 1);
  return welcome;
}

absl::Status ParseWelcome(std::span<const std::byte> frame, Welcome& welcome) {
  if (frame.size() < 16) return absl::DataLossError("the server's answer is shorter than 16 bytes");
  welcome = {};
  std::memcpy(&welcome, frame.data(), std::min(frame.size(), sizeof(welcome)));
  if (welcome.magic != kWelcomeMagic) return absl::DataLossError("the server's answer has a wrong magic: not a kvd?");
  if (absl::Status refused = RefusalStatus(welcome); !refused.ok()) return refused;
  if (welcome.version != kProtocolVersion) {
    return absl::DataLossError(absl::StrCat("admitted with protocol version ", welcome.version));
  }
  if (frame.size() != sizeof(Welcome)) return absl::DataLossError("the server's answer has a wrong length");
  if (welcome.frame_bytes < kFrameBytesMin || welcome.frame_bytes > kFrameBytesMax) {
    return absl::DataLossError(absl::StrCat("admitted with frames of ", welcome.frame_bytes, " bytes"));
  }
  if (welcome.max_value_bytes > kItemBytesMax) {
    return absl::DataLossError(absl::StrCat("admitted with values of up to ", welcome.max_value_bytes, " bytes"));
  }
  if (welcome.credits == 0) return absl::DataLossError("admitted without a credit");
  if (welcome.role < static_cast<uint32_t>(Role::kRead) || welcome.role > static_cast<uint32_t>(Role::kAdmin)) {
    return absl::DataLossError(absl::StrCat("admitted in an unknown role ", welcome.role));
  }
  if (absl::Status geometry = CheckGeometry(GeometryOf(welcome)); !geometry.ok()) {
    return absl::DataLossError(geometry.message());
  }
  return absl::OkStatus();
}

bool IsChallenge(std::span<const std::byte> frame) {
  uint64_t magic = 0;
  if (frame.size() < sizeof(magic)) return false;
  std::memcpy(&magic, frame.data(), sizeof(magic));
  return magic == kChallengeMagic;
}

absl::Status ParseChallenge(std::span<const std::byte> frame, Challenge& challenge) {
  if (frame.size() != sizeof(challenge)) return absl::DataLossError("the server's challenge has a wrong length");
  std::memcpy(&challenge, frame.data(), sizeof(challenge));
  if (challenge.magic != kChallengeMagic) return absl::DataLossError("the server's challenge has a wrong magic");
  if (challenge.reserved0 != 0 || challenge.reserved1 != 0 || challenge.reserved2 != 0) {
    return absl::DataLossError("the server's challenge has a reserved field that is not zero");
  }
  return absl::OkStatus();
}

absl::Status ParseChallengeAnswer(std::span<const std::byte> frame, ChallengeAnswer& answer) {
  if (frame.size() != sizeof(answer)) return absl::InvalidArgumentError("answer to the challenge has a wrong length");
  std::memcpy(&answer, frame.data(), sizeof(answer));
  if (answer.magic != kChallengeAnswerMagic) return absl::InvalidArgumentError("answer to the challenge: wrong magic");
  const bool reserved = answer.reserved0 != 0 || std::any_of(std::begin(answer.reserved1), std::end(answer.reserved1),
                                                             [](uint8_t byte) { return byte != 0; });
  if (reserved) {
    return absl::InvalidArgumentError("answer to the challenge: reserved field is not zero");
  }
  if (answer.key_name[sizeof(answer.key_name) - 1] != 0) {
    return absl::InvalidArgumentError("answer to the challenge: name does not end");
  }
  return absl::OkStatus();
}

std::string_view KeyNameOf(const ChallengeAnswer& answer) {
  return {answer.key_name, strnlen(answer.key_name, sizeof(answer.key_name))};
}

Geometry GeometryOf(const Welcome& welcome) {
  Geometry geometry;
  geometry.incarnation = welcome.incarnation;
  geometry.region_bytes = welcome.region_bytes;
  geometry.directory_offset = welcome.directory_offset;
  geometry.directory_entries = welcome.directory_entries;
  geometry.bucket_bytes = welcome.bucket_bytes;
  geometry.shard_count = welcome.shard_count;
  return geometry;
}

}  // namespace kvd
