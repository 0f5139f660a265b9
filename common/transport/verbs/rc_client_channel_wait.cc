#include <poll.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/base/cpu_relax.h"
#include "common/transport/verbs/rc_client_channel.h"

namespace kvd::verbs {
namespace {

constexpr int64_t kKeepAliveNs = 200'000'000;  // of silence in a wait
constexpr int64_t kEventsNs = 5'000'000;  // between two looks at rdma_cm by one who does not wait

}  // namespace

absl::Status RcClientChannel::status() {
  if (!broken_.ok()) return broken_;
  Drain();
  if (NowNs() - events_looked_at_ns_ > kEventsNs) TakeEvents();
  return broken_;
}

void RcClientChannel::TakeEvents() {
  events_looked_at_ns_ = NowNs();
  if (path_.id.get() != nullptr) {
    while (const std::optional<CmEvent> event = path_.id.channel().Take()) {
      Drain();  // what arrived before the end counts
      if (event->type == RDMA_CM_EVENT_DISCONNECTED) {
        Break(absl::UnavailableError("the server went away"));
      } else if (event->type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
        Break(absl::UnavailableError(absl::StrCat("the RDMA device was removed: ", path_.name)));
      }
    }
  } else {
    TakeSocket();
  }
  while (const std::optional<AsyncEvent> event = async_.Take()) {
    if (event->device_fatal() || event->queue_pair_fatal()) {
      Drain();
      Break(absl::UnavailableError(event->text));
    }
  }
}

// Nothing ever comes over the socket of a TCP exchange; its end is the peer's.
void RcClientChannel::TakeSocket() {
  if (!path_.socket.valid()) return;
  pollfd socket{path_.socket.get(), POLLIN | POLLRDHUP, 0};
  if (poll(&socket, 1, 0) <= 0) return;
  Drain();
  Break(absl::UnavailableError("the server went away"));
}

absl::Status RcClientChannel::Wait(int64_t deadline_ns) {
  for (;;) {
    if (Spin(deadline_ns)) return absl::OkStatus();
    KVD_RETURN_IF_ERROR(broken_);
    Sleep(deadline_ns);
    if (SomethingToPoll()) return absl::OkStatus();
    KVD_RETURN_IF_ERROR(broken_);
    if (NowNs() >= deadline_ns) return absl::DeadlineExceededError("no answer in time");
  }
}

bool RcClientChannel::Spin(int64_t deadline_ns) {
  Drain();
  if (SomethingToPoll()) return true;
  const int64_t until = std::min(deadline_ns, NowNs() + spin_ns_);
  if (spin_ns_ == 0) return false;
  do {
    for (int i = 0; i < 32 && broken_.ok(); ++i) {
      Drain();
      if (SomethingToPoll()) return true;
      CpuRelax();
    }
    OfferCore();
  } while (broken_.ok() && NowNs() < until);
  return false;
}

// Until something arrives, the deadline, or the time to see whether the server's device still
// answers.
void RcClientChannel::Sleep(int64_t deadline_ns) {
  if (absl::Status armed = path_.cq->Arm(); !armed.ok()) return Break(std::move(armed));
  if (Drain() == 0 && broken_.ok()) {
    const int64_t now_ns = NowNs();
    const int64_t left_ns = std::clamp<int64_t>(deadline_ns - now_ns, 0, kKeepAliveNs);
    const timespec timeout{0, left_ns};
    std::array<pollfd, 3> fds{pollfd{path_.cq->fd(), POLLIN, 0},
                              pollfd{EndsFd(), static_cast<short>(POLLIN | POLLRDHUP), 0},
                              pollfd{async_.fd(), POLLIN, 0}};
    const int ready = ppoll(fds.data(), fds.size(), &timeout, nullptr);
    if (ready > 0 && (fds[1].revents != 0 || fds[2].revents != 0)) TakeEvents();
    if (ready == 0 && left_ns == kKeepAliveNs) KeepAlive();
  }
  path_.cq->TakeEvents();
  Drain();
}

bool RcClientChannel::PrepareToSleep() {
  if (absl::Status armed = path_.cq->Arm(); !armed.ok()) Break(std::move(armed));
  asleep_since_ns_ = NowNs();
  return Drain() == 0 && !SomethingToPoll() && broken_.ok();
}

void RcClientChannel::FinishSleep() {
  TakeEvents();
  path_.cq->TakeEvents();
  if (Drain() == 0 && NowNs() - asleep_since_ns_ >= kKeepAliveNs) KeepAlive();
}

// A READ that needs nothing of the server but its device: if it is not answered, the connection
// ends with that cause. A server that is stopped, or busy, is not dead.
void RcClientChannel::KeepAlive() {
  if (!admitted_ || keep_alive_under_way_ || reads_.under_way() || sends_.room() <= 1) return;
  keep_alive_under_way_ = true;
  sends_.AddRead({ScratchAt(), frames_.region().lkey(), 8}, welcome_.region_address,
                 welcome_.region_key, kKeepAliveCookie);
  sends_.SignalLast();
  PostSends().IgnoreError();  // it broke
}

}  // namespace kvd::verbs
