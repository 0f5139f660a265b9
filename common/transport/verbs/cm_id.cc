#include "common/transport/verbs/cm_id.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/unique_fd.h"
#include "common/transport/verbs/parked_ids.h"

namespace kvd::verbs {

absl::StatusOr<std::shared_ptr<CmEventChannel>> CmEventChannel::Create() {
  rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == nullptr) {
    const int error = errno;
    const absl::Status opened = ErrnoStatus(error, "opening /dev/infiniband/rdma_cm");
    if (error != ENOENT && error != ENODEV) return opened;
    return absl::UnavailableError(absl::StrCat(
        opened.message(),
        ": this machine has no RDMA, or its drivers are not loaded. Use shared memory on "
        "the host of kvd; or load the device's driver and rdma_ucm (for Soft-RoCE: modprobe "
        "rdma_rxe; rdma link add rxe0 type rxe netdev eth0)"));
  }
  std::shared_ptr<CmEventChannel> created(new CmEventChannel(channel));
  const int flags = fcntl(channel->fd, F_GETFL);
  if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return ErrnoStatus("fcntl of rdma_cm");
  return created;
}

CmEventChannel::~CmEventChannel() { rdma_destroy_event_channel(channel_); }

std::optional<CmEvent> CmEventChannel::Take() {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_, &event) != 0) return std::nullopt;
  CmEvent copy;
  copy.type = event->event;
  copy.id = event->id;
  copy.status = event->status;
  const rdma_conn_param& parameters = event->param.conn;
  copy.responder_resources = parameters.responder_resources;
  copy.initiator_depth = parameters.initiator_depth;
  copy.peer_qp_number = parameters.qp_num;
  copy.private_bytes = std::min<size_t>(parameters.private_data_len, copy.private_data.size());
  if (parameters.private_data != nullptr) {
    std::memcpy(copy.private_data.data(), parameters.private_data, copy.private_bytes);
  } else {
    copy.private_bytes = 0;
  }
  rdma_ack_cm_event(event);
  return copy;
}

absl::StatusOr<CmEvent> CmEventChannel::Wait(int64_t deadline_ns) {
  for (;;) {
    if (std::optional<CmEvent> event = Take()) return *event;
    const int64_t left_ns = deadline_ns - RealClock::Get().NowMonotonicNs();
    if (left_ns <= 0) return absl::DeadlineExceededError("no answer of rdma_cm in time");
    const timespec timeout{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    pollfd readable{fd(), POLLIN, 0};
    ppoll(&readable, 1, &timeout, nullptr);
  }
}

absl::StatusOr<CmId> CmId::Create(std::shared_ptr<CmEventChannel> channel) {
  ParkedIds::OfProcess().Sweep();
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel->get(), &id, nullptr, RDMA_PS_TCP) != 0)
    return ErrnoStatus("creating an rdma_cm id");
  return CmId(std::move(channel), id);
}

CmId& CmId::operator=(CmId&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  channel_ = std::move(other.channel_);
  id_ = std::exchange(other.id_, nullptr);
  return *this;
}

void CmId::Disconnect() {
  if (PathCarries(id_)) rdma_disconnect(id_);
}

void CmId::CloseDevice() {
  if (id_ == nullptr || id_->verbs == nullptr) return;
  // The library may still close these numbers, so they stay open, on nothing.
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing.valid()) return;
  dup3(nothing.get(), id_->verbs->async_fd, O_CLOEXEC);
  dup3(nothing.get(), id_->verbs->cmd_fd, O_CLOEXEC);
}

void CmId::Reset() {
  std::shared_ptr<CmEventChannel> channel = std::move(channel_);
  rdma_cm_id* id = std::exchange(id_, nullptr);
  if (id == nullptr) return;
  if (PathCarries(id)) {
    rdma_destroy_id(id);
  } else {
    ParkedIds::OfProcess().Park(std::move(channel), id);
  }
}

}  // namespace kvd::verbs
