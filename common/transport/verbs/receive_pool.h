// The receives that all connections of one poller share: as many as these connections may send at
// once, posted to one shared receive queue, so that a sender that keeps to its credits always meets
// one.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transport/verbs/rdma_context.h"
#include "common/transport/verbs/registered_slots.h"

namespace kvd::verbs {

// Granting and releasing: any thread. Looking at messages and giving them back: the poller.
class ReceivePool {
 public:
  static absl::StatusOr<std::unique_ptr<ReceivePool>> Create(std::shared_ptr<ProtectionDomain> pd,
                                                             uint32_t receives_max,
                                                             size_t message_bytes);
  ~ReceivePool();
  ReceivePool(const ReceivePool&) = delete;
  ReceivePool& operator=(const ReceivePool&) = delete;

  ibv_srq* srq() const { return srq_; }

  // Posts `count` more, for as long as somebody may send so many. ResourceExhausted: nothing was
  // granted.
  absl::Status Grant(uint32_t count);
  void Release(uint32_t count);

  // A message in `slot` stays as it is until it is given back.
  const std::byte* At(uint32_t slot) const;
  void GiveBack(std::span<const uint32_t> slots);

 private:
  ReceivePool(std::shared_ptr<ProtectionDomain> pd, ibv_srq* srq, uint32_t receives_max,
              size_t message_bytes)
      : slots_(std::move(pd), message_bytes), srq_(srq), receives_max_(receives_max) {}

  absl::Status Post(uint32_t slot);

  mutable std::mutex mutex_;
  RegisteredSlots slots_;
  ibv_srq* srq_;
  uint32_t receives_max_;
  uint32_t granted_ = 0;
  uint32_t posted_ = 0;  // or being looked at
};

}  // namespace kvd::verbs
