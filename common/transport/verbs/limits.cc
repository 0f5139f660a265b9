#include "common/transport/verbs/limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace kvd::verbs {
namespace {

uint64_t Cut(const char* name, uint64_t wanted, uint64_t limit, std::string& notes) {
  if (wanted <= limit) return wanted;
  absl::StrAppend(&notes, notes.empty() ? "" : ", ", name, " ", limit, " instead of ", wanted);
  return limit;
}

// Attributes are signed, and a device that does not know one says 0 or less.
uint64_t Positive(int attribute) { return attribute > 0 ? static_cast<uint64_t>(attribute) : 0; }

}  // namespace

absl::StatusOr<Limits> ClampLimits(const ibv_device_attr& device, const ibv_port_attr& port,
                                   const LimitsWanted& wanted) {
  if (device.max_qp_rd_atom < 1 || device.max_qp_init_rd_atom < 1) {
    return absl::FailedPreconditionError("the device does not do RDMA READs");
  }
  if (wanted.srq_receives > 0 && (device.max_srq < 1 || device.max_srq_wr < 1)) {
    return absl::FailedPreconditionError("the device has no shared receive queues");
  }
  Limits limits;
  std::string& notes = limits.notes;
  limits.depth.initiator = static_cast<uint8_t>(
      Cut("outgoing READs", wanted.read_depth, Positive(device.max_qp_init_rd_atom), notes));
  limits.depth.responder = static_cast<uint8_t>(
      Cut("incoming READs", wanted.read_depth, Positive(device.max_qp_rd_atom), notes));
  limits.cq_entries = static_cast<uint32_t>(
      Cut("completion queue entries", wanted.cq_entries, Positive(device.max_cqe), notes));
  limits.srq_receives = static_cast<uint32_t>(
      Cut("shared receives", wanted.srq_receives, Positive(device.max_srq_wr), notes));
  limits.qp_requests_max = static_cast<uint32_t>(Positive(device.max_qp_wr));
  limits.region_bytes_max = device.max_mr_size;
  const uint64_t message_bytes = port.max_msg_sz == 0 ? kReadPieceBytes : port.max_msg_sz;
  // A multiple of 8, so that a piece never splits a word.
  limits.read_piece_bytes =
      Cut("bytes of one READ", kReadPieceBytes, std::max<uint64_t>(message_bytes, 8), notes) / 8 *
      8;
  return limits;
}

ReadDepth Negotiate(const ReadDepth& ours, uint8_t peer_initiator, uint8_t peer_responder) {
  ReadDepth agreed;
  agreed.initiator = std::max<uint8_t>(1, std::min(ours.initiator, peer_responder));
  agreed.responder = std::max<uint8_t>(1, std::min(ours.responder, peer_initiator));
  return agreed;
}

uint32_t MtuBytes(ibv_mtu mtu) { return uint32_t{128} << std::clamp<uint32_t>(mtu, 1, 5); }

}  // namespace kvd::verbs
