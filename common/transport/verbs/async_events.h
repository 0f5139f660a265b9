// What a device says on its own account: ports that go and come, queue pairs that fail, its own
// removal.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/transport/verbs/rdma_context.h"

namespace kvd::verbs {

struct AsyncEvent {
  ibv_event_type type{};
  uint32_t qp_number = 0;  // of events of queue pairs
  uint8_t port = 0;        // of events of ports
  std::string text;        // "port 1 of mlx5_0: port error"

  // The whole device can be used no more.
  bool device_fatal() const { return type == IBV_EVENT_DEVICE_FATAL; }
  // One queue pair can be used no more.
  bool queue_pair_fatal() const {
    return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
           type == IBV_EVENT_QP_ACCESS_ERR;
  }
};

// Makes the context's descriptor, async_fd(), non-blocking; one reader for each context.
class AsyncEvents {
 public:
  explicit AsyncEvents(std::shared_ptr<RdmaContext> context);

  int fd() const { return context_->get()->async_fd; }

  // The next event that is there, acknowledged already. Never blocks.
  std::optional<AsyncEvent> Take();

 private:
  std::shared_ptr<RdmaContext> context_;
};

}  // namespace kvd::verbs
