// What goes over a connection besides the frames themselves.
//
//   connect, private data    ConnectData (24)       may this peer try?
//   reject, private data     RejectData (96)        why not
//   each message             MessagePrefix (8), then its body of `body_bytes`:
//     client -> server         kHello    Hello        first, once
//     server -> client         kChallenge, kAnswer back: where the client is to prove a key, once
//     server -> client         kWelcome  Welcome      once: admitted or refused
//     both                     kFrame    a request or reply
//     server -> client         kClose    CloseNotice  the last message: why the session ends
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "common/layout/hello.h"

namespace kvd::verbs {

inline constexpr uint32_t kConnectMagic = 0x5244564b;  // the bytes "KVDR"
inline constexpr uint32_t kCreditsMax = 1024;
inline constexpr size_t kPrivateBytesMax = 56;  // what rdma_cm leaves of a connect

struct ConnectData {
  uint32_t magic;
  uint16_t version_min;
  uint16_t version_max;
  uint64_t feature_bits;
  uint32_t credits_wanted;  // a queue pair's size is chosen before Hello arrives
  uint32_t reserved;        // zero
};

struct RejectData {
  uint32_t magic;
  uint32_t status;  // WelcomeStatus
  uint16_t version;
  uint16_t version_min;
  uint32_t reserved;  // zero
  char text[80];      // NUL-padded
};

enum class MessageKind : uint8_t { kHello = 1, kWelcome = 2, kFrame = 3, kClose = 4, kChallenge = 5, kAnswer = 6 };

struct MessagePrefix {
  uint8_t kind;
  uint8_t reserved[3];  // zero
  uint32_t body_bytes;
};

struct CloseNotice {
  uint32_t code;  // absl::StatusCode
  uint32_t text_bytes;
  char text[240];
};

static_assert(sizeof(ConnectData) == 24 && sizeof(ConnectData) <= kPrivateBytesMax);
static_assert(std::has_unique_object_representations_v<ConnectData>);
static_assert(offsetof(ConnectData, version_min) == 4 && offsetof(ConnectData, version_max) == 6);
static_assert(offsetof(ConnectData, feature_bits) == 8 &&
              offsetof(ConnectData, credits_wanted) == 16);
static_assert(sizeof(RejectData) == 96 && std::has_unique_object_representations_v<RejectData>);
static_assert(offsetof(RejectData, status) == 4 && offsetof(RejectData, version) == 8);
static_assert(offsetof(RejectData, version_min) == 10 && offsetof(RejectData, text) == 16);
static_assert(sizeof(MessagePrefix) == 8 &&
              std::has_unique_object_representations_v<MessagePrefix>);
static_assert(offsetof(MessagePrefix, body_bytes) == 4);
static_assert(sizeof(CloseNotice) == 248 && std::has_unique_object_representations_v<CloseNotice>);
static_assert(offsetof(CloseNotice, text_bytes) == 4 && offsetof(CloseNotice, text) == 8);

ConnectData MakeConnectData(const Hello& hello);

// Judges the private data of a connect. InvalidArgument: not ours or numbers that cannot be;
// FailedPrecondition: no common version.
absl::Status ParseConnectData(std::span<const std::byte> bytes, ConnectData& data);

RejectData MakeReject(WelcomeStatus status, std::string_view why);

// Which refusal an error on the server's side means.
WelcomeStatus RefusalOf(const absl::Status& status);

// The error that a rejection means; of one that is not kvd's, Unavailable.
absl::Status RejectStatus(std::span<const std::byte> bytes);

// The body of one received message. InvalidArgument: it is not a message of one of our kinds and
// lengths.
absl::Status ParseMessage(std::span<const std::byte> message, MessageKind& kind,
                          std::span<const std::byte>& body);

CloseNotice MakeCloseNotice(const absl::Status& reason);

// Why the server ended the session, as the client reports it: Unavailable, or DataLoss if this side
// broke the protocol.
absl::Status CloseStatus(std::span<const std::byte> body);

}  // namespace kvd::verbs
