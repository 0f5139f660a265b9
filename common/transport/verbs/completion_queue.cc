#include "common/transport/verbs/completion_queue.h"

#include <fcntl.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"

namespace kvd::verbs {

absl::StatusOr<std::shared_ptr<CompletionQueue>> CompletionQueue::Create(
    std::shared_ptr<RdmaContext> context, uint32_t entries) {
  ibv_comp_channel* channel = ibv_create_comp_channel(context->get());
  if (channel == nullptr)
    return ErrnoStatus(absl::StrCat("creating a completion channel on ", context->name()));
  const int flags = fcntl(channel->fd, F_GETFL);
  const bool unblocked = flags >= 0 && fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) == 0;
  ibv_cq* cq = unblocked
                   ? ibv_create_cq(context->get(), static_cast<int>(entries), nullptr, channel, 0)
                   : nullptr;
  if (cq == nullptr) {
    const absl::Status failed = ErrnoStatus(
        absl::StrCat("creating a completion queue of ", entries, " entries on ", context->name()));
    ibv_destroy_comp_channel(channel);
    return failed;
  }
  return std::shared_ptr<CompletionQueue>(new CompletionQueue(std::move(context), channel, cq));
}

CompletionQueue::~CompletionQueue() {
  TakeEvents();  // an event that is taken and not acknowledged would block the next call
  ibv_destroy_cq(cq_);
  ibv_destroy_comp_channel(channel_);
}

absl::Status CompletionQueue::Arm() {
  const int error = ibv_req_notify_cq(cq_, 0);
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, "arming a completion queue");
}

void CompletionQueue::TakeEvents() {
  ibv_cq* cq = nullptr;
  void* cookie = nullptr;
  unsigned taken = 0;
  while (ibv_get_cq_event(channel_, &cq, &cookie) == 0) ++taken;
  if (taken > 0) ibv_ack_cq_events(cq_, taken);
}

}  // namespace kvd::verbs
