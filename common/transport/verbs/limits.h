// What we would like of a device, cut to what it can do.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transport/verbs/queue_pair.h"

namespace kvd::verbs {

inline constexpr uint32_t kInlineBytesWanted = 256;
inline constexpr uint8_t kReadDepthWanted = 16;
inline constexpr uint64_t kReadPieceBytes = uint64_t{1} << 20;  // of a READ that is longer

struct Limits {
  ReadDepth depth;  // offered to the peer; what both agree on comes back from the connection
  uint64_t read_piece_bytes = 0;
  uint32_t cq_entries = 0;
  uint32_t srq_receives = 0;
  uint32_t qp_requests_max = 0;  // send or receive requests of one queue pair
  uint64_t region_bytes_max = 0;
  std::string notes;  // what was cut and why, for a log line; empty if nothing was
};

struct LimitsWanted {
  uint8_t read_depth = kReadDepthWanted;
  uint32_t cq_entries = 0;
  uint32_t srq_receives = 0;  // zero: no shared receive queue needed
};

// FailedPrecondition: the device lacks what nothing works without (READs, a shared receive queue).
absl::StatusOr<Limits> ClampLimits(const ibv_device_attr& device, const ibv_port_attr& port,
                                   const LimitsWanted& wanted);

// The depth for this connection: ours, cut to what the peer offers in a CM event or exchange, and
// at least 1.
ReadDepth Negotiate(const ReadDepth& ours, uint8_t peer_initiator, uint8_t peer_responder);

// Bytes of an ibv_mtu.
uint32_t MtuBytes(ibv_mtu mtu);

}  // namespace kvd::verbs
