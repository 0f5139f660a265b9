// Connecting without rdma_cm: both sides tell each other over a TCP connection what a queue pair
// needs to know, and bring it up by hand. The connection then stays open and idle: its end is the
// notice of the peer's death.
#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/admission/proof.h"
#include "common/layout/hello.h"
#include "common/transport/verbs/limits.h"
#include "common/transport/verbs/queue_pair.h"
#include "common/transport/verbs/rdma_context.h"

namespace kvd::verbs {

inline constexpr uint32_t kExchangeMagic = 0x5844564b;  // the bytes "KVDX"

// Either way, once.
struct ExchangeData {
  uint32_t magic;
  uint32_t status;  // WelcomeStatus, of an answer
  uint16_t version_min;
  uint16_t version_max;
  uint8_t mtu;        // ibv_mtu
  uint8_t initiator;  // READs that this side may have under way
  uint8_t responder;  // READs that it answers at once
  uint8_t gid_type;   // ibv_gid_type
  uint32_t qp_number;
  uint32_t packet_number;  // its first
  uint32_t credits_wanted;
  uint16_t lid;        // InfiniBand; else zero
  uint16_t reserved1;  // zero
  uint8_t gid[16];
  char text[80];  // why not; NUL-padded
};

static_assert(sizeof(ExchangeData) == 128 &&
              std::has_unique_object_representations_v<ExchangeData>);
static_assert(offsetof(ExchangeData, version_min) == 8 && offsetof(ExchangeData, mtu) == 12);
static_assert(offsetof(ExchangeData, qp_number) == 16 &&
              offsetof(ExchangeData, packet_number) == 20);
static_assert(offsetof(ExchangeData, credits_wanted) == 24 && offsetof(ExchangeData, lid) == 28);
static_assert(offsetof(ExchangeData, gid) == 32 && offsetof(ExchangeData, text) == 48);

// This side's end of the path.
struct LocalEnd {
  uint8_t port = 1;
  uint8_t gid_index = 0;
  bool by_gid = true;  // false: InfiniBand, by lid
};

// What this side has to say of its queue pair, and the end that goes with it. `local` is the TCP
// connection's own address, which tells the netdev; `gid_index` -1: chosen.
absl::StatusOr<ExchangeData> DescribeEnd(const RdmaContext& context, uint8_t port, int gid_index,
                                         const sockaddr* local, const QueuePair& qp,
                                         const ReadDepth& depth, LocalEnd& end);

// For the proof of a key: where packets of that side come from and go to.
ChannelEnd EndOf(const ExchangeData& side);

// Judges what the peer said. InvalidArgument, FailedPrecondition (version); for an answer also what
// its status says.
absl::Status ParseExchange(std::span<const std::byte> bytes, bool is_answer, ExchangeData& data);

ExchangeData RefuseExchange(WelcomeStatus status, std::string_view why);

// INIT, RTR, RTS with the smaller MTU of both. Unavailable: packets of one GID cannot reach the
// other.
absl::Status ConnectByHand(QueuePair& qp, const LocalEnd& end, const ExchangeData& mine,
                           const ExchangeData& peer, const ReadDepth& depth);

// A port of this device that is active; Unavailable.
absl::StatusOr<uint8_t> ActivePort(const RdmaContext& context);

}  // namespace kvd::verbs
