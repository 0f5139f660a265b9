// rdma_cm's event channel and identifiers. Events are copied and acknowledged at once, so
// destroying an identifier never waits for anybody.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvd::verbs {

struct CmEvent {
  rdma_cm_event_type type{};
  rdma_cm_id* id = nullptr;  // of kConnectRequest: a new one, which the receiver adopts
  int status = 0;            // negative errno, or rdma_cm's reason of a rejection
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint32_t peer_qp_number = 0;
  std::array<std::byte, 256> private_data{};  // zero behind what came
  size_t private_bytes = 0;
};

class CmEventChannel {
 public:
  static absl::StatusOr<std::shared_ptr<CmEventChannel>> Create();
  ~CmEventChannel();
  CmEventChannel(const CmEventChannel&) = delete;
  CmEventChannel& operator=(const CmEventChannel&) = delete;

  rdma_event_channel* get() const { return channel_; }
  int fd() const { return channel_->fd; }

  // The next event that is there. Never blocks.
  std::optional<CmEvent> Take();

  // The next event, or DeadlineExceeded once the monotonic clock passes `deadline_ns`.
  absl::StatusOr<CmEvent> Wait(int64_t deadline_ns);

 private:
  explicit CmEventChannel(rdma_event_channel* channel) : channel_(channel) {}
  rdma_event_channel* channel_;
};

class CmId {
 public:
  static absl::StatusOr<CmId> Create(std::shared_ptr<CmEventChannel> channel);
  static CmId Adopt(std::shared_ptr<CmEventChannel> channel, rdma_cm_id* id) {
    return CmId(std::move(channel), id);
  }

  CmId() = default;
  ~CmId() { Reset(); }
  CmId(CmId&& other) noexcept
      : channel_(std::move(other.channel_)), id_(std::exchange(other.id_, nullptr)) {}
  CmId& operator=(CmId&& other) noexcept;

  rdma_cm_id* get() const { return id_; }
  CmEventChannel& channel() const { return *channel_; }

  // Tells the peer that the connection has ended, if its path can carry that.
  void Disconnect();

  // Closes the device beneath it, which is being removed: librdmacm keeps a device that it has
  // opened, and drivers without disassociation wait for the last that has it open. Ids of that
  // device, in the whole process, can only be destroyed afterwards.
  void CloseDevice();

  // Destroys it; an established connection is ended, and the peer told, as soon as its path can
  // carry that (parked_ids.h). What is posted on its queue pair is the caller's to flush.
  void Reset();

 private:
  CmId(std::shared_ptr<CmEventChannel> channel, rdma_cm_id* id)
      : channel_(std::move(channel)), id_(id) {}

  std::shared_ptr<CmEventChannel> channel_;
  rdma_cm_id* id_ = nullptr;
};

}  // namespace kvd::verbs
