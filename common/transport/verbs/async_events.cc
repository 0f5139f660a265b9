#include "common/transport/verbs/async_events.h"

#include <fcntl.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace kvd::verbs {

AsyncEvents::AsyncEvents(std::shared_ptr<RdmaContext> context) : context_(std::move(context)) {
  const int flags = fcntl(fd(), F_GETFL);
  if (flags >= 0) fcntl(fd(), F_SETFL, flags | O_NONBLOCK);
}

std::optional<AsyncEvent> AsyncEvents::Take() {
  ibv_async_event raw;
  if (ibv_get_async_event(context_->get(), &raw) != 0) return std::nullopt;
  AsyncEvent event;
  event.type = raw.event_type;
  const char* what = ibv_event_type_str(raw.event_type);
  switch (raw.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
      event.qp_number = raw.element.qp->qp_num;
      event.text =
          absl::StrCat("queue pair ", event.qp_number, " of ", context_->name(), ": ", what);
      break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      event.port = static_cast<uint8_t>(raw.element.port_num);
      event.text = absl::StrCat("port ", event.port, " of ", context_->name(), ": ", what);
      break;
    default:
      event.text = absl::StrCat(context_->name(), ": ", what);
      break;
  }
  ibv_ack_async_event(&raw);
  return event;
}

}  // namespace kvd::verbs
