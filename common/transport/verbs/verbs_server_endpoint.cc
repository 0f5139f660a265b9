#include "common/transport/verbs/verbs_server_endpoint.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/transport/verbs/server_event_batch.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {

namespace {

constexpr uint64_t kPollsPerClock = 64;
constexpr int64_t kClosingTickNs = 20'000'000;

void Empty(int fd) {
  uint64_t ignored;
  [[maybe_unused]] const ssize_t got = read(fd, &ignored, sizeof(ignored));
}

void SetTimer(int fd, int64_t due_ns) {
  itimerspec spec{};
  spec.it_value = {due_ns / 1'000'000'000, due_ns % 1'000'000'000};
  timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, nullptr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<VerbsServerEndpoint>> VerbsServerEndpoint::Create(
    const Options& options) {
  std::unique_ptr<VerbsServerEndpoint> endpoint(new VerbsServerEndpoint(options));
  KVD_RETURN_IF_ERROR(endpoint->Init());
  return endpoint;
}

VerbsServerEndpoint::VerbsServerEndpoint(const Options& options)
    : options_(options),
      counters_(*options.counters),
      send_slots_(options.device->pd,
                  (sizeof(MessagePrefix) + options.frame_bytes + 63) / 64 * 64) {
  told_causes_.reserve(kBatchMax);  // events point into it
}

absl::Status VerbsServerEndpoint::Init() {
  KVD_ASSIGN_OR_RETURN(
      cq_, CompletionQueue::Create(options_.device->context(), options_.limits.cq_entries));
  KVD_ASSIGN_OR_RETURN(
      receives_,
      ReceivePool::Create(options_.device->pd, options_.limits.srq_receives,
                          (sizeof(MessagePrefix) + options_.frame_bytes + 63) / 64 * 64));
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return ErrnoStatus("epoll_create1");
  inbox_event_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!inbox_event_.valid()) return ErrnoStatus("eventfd");
  timer_.Reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_.valid()) return ErrnoStatus("timerfd_create");
  for (const int fd : {cq_->fd(), inbox_event_.get(), timer_.get()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return ErrnoStatus("epoll_ctl");
  }
  return absl::OkStatus();
}

VerbsServerEndpoint::~VerbsServerEndpoint() {
  for (const auto& [id, channel] : channels_) {
    if (channel->qp != nullptr) channel->qp->Destroy();
  }
}

VerbsServerChannel* VerbsServerEndpoint::Find(ChannelId id) {
  const auto at = channels_.find(id);
  return at == channels_.end() ? nullptr : at->second.get();
}

VerbsServerChannel* VerbsServerEndpoint::FindByQueuePair(uint32_t number) {
  const auto at = by_qp_.find(number);
  if (at != by_qp_.end()) return at->second;
  if (inbox_count_.load(std::memory_order_acquire) == 0) return nullptr;
  TakeNewConnections();  // its first message was faster
  const auto again = by_qp_.find(number);
  return again == by_qp_.end() ? nullptr : again->second;
}

// --- Polling and sleep ---

size_t VerbsServerEndpoint::Poll(std::span<ServerEvent> events) {
  Batch batch(events);
  told_causes_.clear();
  if (!lent_.empty()) {
    receives_->GiveBack(lent_);
    lent_.clear();
  }
  if (releasing_ && channels_.empty()) LetGoOfDevice();
  const bool woken = std::exchange(armed_, false);
  if (woken) Disarm();
  if (woken || ++polls_ % kPollsPerClock == 0) Tick(RealClock::Get().NowMonotonicNs());
  if (inbox_count_.load(std::memory_order_acquire) != 0) {
    TakeNewConnections();
    TakeCommands(batch);
  }
  EmitPulls(batch);
  EmitClosed(batch);
  TakeCompletions(batch);
  EmitPulls(batch);
  return batch.count();
}

void VerbsServerEndpoint::Disarm() {
  epoll_event ready[3];
  const int count = epoll_wait(epoll_.get(), ready, 3, 0);
  for (int i = 0; i < count; ++i) {
    if (cq_ != nullptr && ready[i].data.fd == cq_->fd()) {
      cq_->TakeEvents();
    } else {
      Empty(ready[i].data.fd);
    }
  }
}

void VerbsServerEndpoint::LetGoOfDevice() {
  releasing_ = false;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, cq_->fd(), nullptr);
  receives_.reset();
  send_slots_ = RegisteredSlots(nullptr, send_slots_.slot_bytes());
  cq_.reset();
  options_.device.reset();
  options_.owner->DeviceReleased();
}

bool VerbsServerEndpoint::PrepareToSleep() {
  if (inbox_count_.load(std::memory_order_acquire) != 0 || !gone_.empty() || !done_pulls_.empty() ||
      ready_count_ > 0 || (releasing_ && channels_.empty())) {
    return false;
  }
  armed_ = true;
  if (cq_ != nullptr) {
    if (!cq_->Arm().ok()) return false;
    ready_count_ = cq_->Poll(ready_);
    if (ready_count_ > 0) return false;
  }
  const int64_t due_ns = !closing_.empty()   ? RealClock::Get().NowMonotonicNs() + kClosingTickNs
                         : channels_.empty() ? 0
                                             : std::max<int64_t>(tick_at_ns_, 1);
  if (std::exchange(timer_due_ns_, due_ns) != due_ns) SetTimer(timer_.get(), due_ns);
  return true;
}

}  // namespace kvd::verbs
