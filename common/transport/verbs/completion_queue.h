// A completion queue with the channel on which its owner sleeps.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transport/verbs/rdma_context.h"

namespace kvd::verbs {

class CompletionQueue {
 public:
  // At least `entries`. ResourceExhausted: more than the device has.
  static absl::StatusOr<std::shared_ptr<CompletionQueue>> Create(
      std::shared_ptr<RdmaContext> context, uint32_t entries);
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  ibv_cq* get() const { return cq_; }
  uint32_t entries() const { return static_cast<uint32_t>(cq_->cqe); }

  // Takes completions that are there. Negative never: a device that fails to poll has none.
  size_t Poll(std::span<ibv_wc> completions) {
    const int got = ibv_poll_cq(cq_, static_cast<int>(completions.size()), completions.data());
    return got < 0 ? 0 : static_cast<size_t>(got);
  }

  // To sleep without losing a completion: Arm, Poll until empty, only then wait for fd() to be
  // readable. After waking, or instead of sleeping, TakeEvents. Neither blocks.
  absl::Status Arm();
  void TakeEvents();
  int fd() const { return channel_->fd; }

 private:
  CompletionQueue(std::shared_ptr<RdmaContext> context, ibv_comp_channel* channel, ibv_cq* cq)
      : context_(std::move(context)), channel_(channel), cq_(cq) {}

  std::shared_ptr<RdmaContext> context_;
  ibv_comp_channel* channel_;
  ibv_cq* cq_;
};

}  // namespace kvd::verbs
