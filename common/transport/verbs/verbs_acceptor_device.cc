// What the device itself has to say, up to its removal.
//
// A removal, from the first word of it to the last thing given back: every connection is ended with
// that cause; when the last has gone, the endpoints let go of the device, each on its poller; then
// the ids, the event channels and the region's registration go, and with them the last that keeps
// the kernel from removing it. Nobody is accepted any more. Shared memory knows nothing of all
// this.
#include <rdma/rdma_cma.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/transport/verbs/gids.h"
#include "common/transport/verbs/parked_ids.h"
#include "common/transport/verbs/verbs_acceptor.h"

namespace kvd::verbs {

// rdma_cm tells of a removal only those who hold an id that is bound to the device: a listener at
// all addresses is not, and without rdma_cm there is none.
void VerbsAcceptor::WatchDevice() {
  const RdmaContext& device = *options_.device->context();
  if (events_ == nullptr) {
    auto events = CmEventChannel::Create();
    if (!events.ok()) return;
    events_ = *std::move(events);
  }
  for (const int family : {AF_INET, AF_INET6}) {
    for (SocketAddress& address : AddressesOf(device, family)) {
      auto id = CmId::Create(events_);
      if (!id.ok() || rdma_bind_addr(id->get(), address.get()) != 0) continue;
      if (id->get()->verbs == nullptr ||
          ibv_get_device_name(id->get()->verbs->device) != device.name())
        continue;
      watch_ = *std::move(id);
      return;
    }
  }
}

void VerbsAcceptor::TakeAsyncEvents() {
  while (const std::optional<AsyncEvent> event = async_->Take()) {
    if (event->type == IBV_EVENT_COMM_EST) {
      // The first message was faster than rdma_cm's own last word, which may be lost.
      for (auto& [id, connection] : connections_) {
        if (connection.qp->number() == event->qp_number && connection.id.get() != nullptr) {
          rdma_notify(connection.id.get(), IBV_EVENT_COMM_EST);
        }
      }
      continue;
    }
    if (event->type == IBV_EVENT_QP_LAST_WQE_REACHED || event->type == IBV_EVENT_SQ_DRAINED)
      continue;
    Count(options_.counters->async_events);
    options_.log(absl::StrCat("RDMA: ", event->text));
    const absl::Status cause = absl::UnavailableError(event->text);
    if (event->device_fatal()) DeviceGoes(cause);
    if (event->queue_pair_fatal()) {
      for (auto& [id, connection] : connections_) {
        if (connection.qp->number() == event->qp_number) connection.endpoint->End(id, cause, false);
      }
    }
  }
}

// Where nobody tells: see for ourselves.
void VerbsAcceptor::LookAtDevice() {
  if (options_.device == nullptr || watch_.get() != nullptr || Going()) return;
  if (!DeviceIsThere(*options_.device->context()->get()->device)) DeviceGoes(RemovalCause());
}

absl::Status VerbsAcceptor::RemovalCause() const {
  return absl::UnavailableError(
      absl::StrCat("the RDMA device ", options_.device->context()->name(), " is being removed"));
}

void VerbsAcceptor::DeviceGoes(const absl::Status& cause) {
  if (Going()) return;
  gone_cause_ = cause;
  options_.log(absl::StrCat("RDMA: all sessions end: ", cause.message()));
  options_.device_goes(cause);
  for (auto& [id, connection] : connections_) connection.endpoint->End(id, cause, true);
}

// As far as it has come.
void VerbsAcceptor::GoOnReleasing() {
  if (options_.device == nullptr || !Going() || !connections_.empty()) return;
  if (!std::exchange(release_asked_, true)) {
    endpoints_holding_ = options_.endpoints.size();
    for (VerbsServerEndpoint* endpoint : options_.endpoints) endpoint->ReleaseDevice();
  }
  if (endpoints_holding_ > 0) return;
  const std::string name = options_.device->context()->name();
  watch_.CloseDevice();
  watch_.Reset();
  CloseListener();
  ParkedIds::OfProcess().Sweep();
  async_.reset();
  options_.device.reset();
  options_.device_released();
  options_.log(absl::StrCat("RDMA: ", name, " is given back; start kvd again to serve by RDMA"));
}

}  // namespace kvd::verbs
