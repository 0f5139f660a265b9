#include "common/transport/shm/shm_server_channel.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/transport/shm/descriptor_reserve.h"
#include "common/transport/shm/unix_socket.h"

namespace kvd {
namespace {

constexpr int kPacketsPerRead = 16;
constexpr int kPacketsPerSearch = 4096;

std::byte* At(const AcceptedSession& accepted, uint64_t offset) {
  return accepted.segment.base() + offset;
}

}  // namespace

ShmServerChannel::ShmServerChannel(ChannelId id, AcceptedSession accepted)
    : id_(id),
      accepted_(std::move(accepted)),
      requests_(At(accepted_, accepted_.layout.requests_offset()), accepted_.layout),
      replies_(At(accepted_, accepted_.layout.replies_offset()), accepted_.layout) {}

absl::StatusOr<bool> ShmServerChannel::TakeRequest(std::byte* into, size_t& length_bytes) {
  switch (requests_.Take(into, length_bytes)) {
    case RingConsumer::Taken::kNothing:
      return false;
    case RingConsumer::Taken::kBroken:
      return absl::InvalidArgumentError("the request ring holds a stamp or length that cannot be");
    case RingConsumer::Taken::kFrame:
      break;
  }
  if (outstanding_ == accepted_.layout.credits) {
    return absl::InvalidArgumentError(
        absl::StrCat("more requests outstanding than the ", outstanding_, " credits granted"));
  }
  ++outstanding_;
  return true;
}

bool ShmServerChannel::PushReply(const FrameParts& frame) {
  if (outstanding_ == 0) return false;
  KVD_CHECK(frame.bytes() <= accepted_.layout.frame_bytes);
  --outstanding_;
  replies_.Push(frame);
  return true;
}

void ShmServerChannel::Wake() {
  std::atomic_ref<uint32_t> sleeping(header().client_sleeping);
  // seq_cst, after the seq_cst store in RingProducer::Push: the partner is the client's Wait
  // (ring.h).
  if (sleeping.load(std::memory_order_seq_cst) == 0) return;
  if (sleeping.exchange(0, std::memory_order_seq_cst) == 0) return;
  const std::byte bell{kDoorbell};
  // EAGAIN: the client's socket is full of bells that wake it just as well.
  SendPacket(socket(), std::span(&bell, 1));
}

absl::Status ShmServerChannel::ReadSocket(uint32_t wanted_segment) {
  const int packets_max = wanted_segment == 0 ? kPacketsPerRead : kPacketsPerSearch;
  for (int i = 0; i < packets_max; ++i) {
    if (wanted_segment != 0 && segments_.Knows(wanted_segment)) break;
    alignas(SegmentNotice) std::byte bytes[sizeof(SegmentNotice)];
    Packet packet;
    const int error = ReceivePacket(socket(), bytes, packet);
    // What is not kept below is not closed on this thread.
    const absl::Cleanup drop = [&packet] { CloseElsewhere(packet); };
    if (error == EAGAIN) return absl::OkStatus();
    if (error != 0 || packet.bytes == 0) return absl::UnavailableError("the client went away");
    if (packet.bytes == 1 && bytes[0] == std::byte{kDoorbell} && packet.fd_count == 0) {
      if (bells_owed_ == 0) return absl::InvalidArgumentError("rang although nobody slept");
      --bells_owed_;
      continue;
    }
    if (packet.bytes != sizeof(SegmentNotice) || packet.truncated || packet.fd_count > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("a packet of ", packet.bytes, " bytes that is no message"));
    }
    if (packet.fds_lost && packet.fd_count == 0) continue;  // we are out of descriptors
    // Whoever may only read has nothing that would be pulled: its descriptors would be a burden.
    if (accepted_.role == Role::kRead) continue;
    // Others keep no buffer where descriptors run out, as if it had not arrived.
    if (packet.fd_count == 1 && IsOfTheReserve(packet.fds[0].get())) continue;
    SegmentNotice notice;
    std::memcpy(&notice, bytes, sizeof(notice));
    KVD_RETURN_IF_ERROR(segments_.Apply(notice, packet.fds[0]));
  }
  return absl::OkStatus();
}

void ShmServerChannel::Arm() {
  std::atomic_ref<uint32_t> sleeping(header().server_sleeping);
  if (sleeping.exchange(1, std::memory_order_seq_cst) == 0)
    ++bells_owed_;  // partner: Channel::Send
}

void ShmServerChannel::Disarm() {
  std::atomic_ref<uint32_t> sleeping(header().server_sleeping);
  if (sleeping.exchange(0, std::memory_order_seq_cst) != 0 && bells_owed_ > 0) --bells_owed_;
}

void ShmServerChannel::WriteReason(const absl::Status& reason) {
  const absl::string_view message = reason.message();
  SessionHeader& at = header();
  const size_t bytes = std::min<size_t>(message.size(), kSessionTextBytes - 1);
  std::memcpy(at.text, message.data(), bytes);
  std::memset(at.text + bytes, 0, kSessionTextBytes - bytes);
  std::atomic_ref<uint32_t>(at.text_bytes)
      .store(static_cast<uint32_t>(bytes), std::memory_order_relaxed);
  std::atomic_ref<uint32_t>(at.closed).store(static_cast<uint32_t>(reason.code()),
                                             std::memory_order_release);  // partner: status()
}

}  // namespace kvd
