#include "common/transport/shm/shm_server_endpoint.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/memory_reserve.h"

namespace kvd {
namespace {

constexpr uint64_t kIncomingData = 0;  // channel ids start at 1
constexpr uint64_t kPollsPerClock = 64;
constexpr int64_t kTickNs = 1'000'000;
constexpr int64_t kTickNsWithParked = 50'000;  // there a bell may be a request
constexpr uint64_t kIdleTicks = 4;
constexpr int kSocketEventsMax = 64;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

class ShmServerEndpoint::Batch {
 public:
  explicit Batch(std::span<ServerEvent> events)
      : events_(events.first(std::min(events.size(), kBatchMax))) {}

  bool full() const { return count_ == events_.size(); }
  size_t room() const { return events_.size() - count_; }
  size_t count() const { return count_; }

  ServerEvent& Add(ServerEvent::Kind kind, ChannelId channel) {
    ServerEvent& event = events_[count_++];
    event = ServerEvent{};
    event.kind = kind;
    event.channel = channel;
    return event;
  }

  size_t frame_bytes = 0;  // used of frames_

 private:
  std::span<ServerEvent> events_;
  size_t count_ = 0;
};

absl::StatusOr<std::unique_ptr<ShmServerEndpoint>> ShmServerEndpoint::Create() {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return ErrnoStatus("epoll_create1");
  UniqueFd incoming(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!incoming.valid()) return ErrnoStatus("eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kIncomingData;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, incoming.get(), &event) != 0) {
    return ErrnoStatus("epoll_ctl of an eventfd");
  }
  return std::unique_ptr<ShmServerEndpoint>(
      new ShmServerEndpoint(std::move(epoll), std::move(incoming)));
}

ShmServerEndpoint::ShmServerEndpoint(UniqueFd epoll, UniqueFd incoming_event)
    : epoll_(std::move(epoll)), incoming_event_(std::move(incoming_event)) {
  ended_.reserve(kBatchMax);  // events point into it
}

void ShmServerEndpoint::Adopt(AcceptedSession accepted) {
  {
    const std::lock_guard lock(incoming_mutex_);
    incoming_.push_back(std::move(accepted));
    incoming_count_.store(incoming_.size(), std::memory_order_release);
  }
  load_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t one = 1;
  // Cannot fail in a way that matters: a full counter is as readable as any other.
  [[maybe_unused]] const ssize_t written = write(incoming_event_.get(), &one, sizeof(one));
}

size_t ShmServerEndpoint::Poll(std::span<ServerEvent> events) {
  Batch batch(events);
  ended_.clear();
  if (SocketsAreDue()) CheckSockets();
  if (!ending_.empty()) EmitClosed(batch);
  if (incoming_count_.load(std::memory_order_acquire) != 0) TakeIncoming(batch);
  if (!pulls_.empty()) AdvancePulls(batch);
  TakeRequests(batch);
  return batch.count();
}

bool ShmServerEndpoint::SocketsAreDue() {
  if (!armed_ && ++polls_ % kPollsPerClock != 0) return false;
  const int64_t now_ns = RealClock::Get().NowMonotonicNs();
  if (std::exchange(armed_, false)) {
    DisarmAll();
  } else {
    const bool parked = channels_.size() > polled_.size();
    if (now_ns - sockets_checked_ns_ < (parked ? kTickNsWithParked : kTickNs)) return false;
  }
  if (now_ns / kTickNs != sockets_checked_ns_ / kTickNs) ++tick_;
  sockets_checked_ns_ = now_ns;
  return true;
}

void ShmServerEndpoint::CheckSockets() {
  epoll_event ready[kSocketEventsMax];
  const int count = epoll_wait(epoll_.get(), ready, kSocketEventsMax, 0);
  for (int i = 0; i < count; ++i) {
    if (ready[i].data.u64 == kIncomingData) {
      uint64_t ignored;
      [[maybe_unused]] const ssize_t got = read(incoming_event_.get(), &ignored, sizeof(ignored));
      continue;
    }
    ShmServerChannel* channel = Find(ChannelId{ready[i].data.u64});
    if (channel == nullptr) continue;
    if ((ready[i].events & EPOLLIN) != 0) ReadSocket(*channel);
    if ((ready[i].events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) {
      BeginClose(*channel, absl::UnavailableError("the client went away"));
    }
  }
  if (polled_.size() > kPolledFree) ParkIdleChannels();
}

void ShmServerEndpoint::ReadSocket(ShmServerChannel& channel, uint32_t wanted_segment) {
  if (channel.closing) return;
  absl::Status status;
  try {
    status = WithoutReserve([&] { return channel.ReadSocket(wanted_segment); });
  } catch (const std::bad_alloc&) {
    status = absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
  if (!status.ok()) {
    BeginClose(channel, status);
  } else if (channel.polled_at == ShmServerChannel::kNotPolled) {
    StartPolling(channel);
  }
}

void ShmServerEndpoint::StartPolling(ShmServerChannel& channel) {
  channel.Disarm();
  channel.active_tick = tick_;
  channel.polled_at = polled_.size();
  polled_.push_back(&channel);
}

void ShmServerEndpoint::StopPolling(ShmServerChannel& channel) {
  const size_t at = std::exchange(channel.polled_at, ShmServerChannel::kNotPolled);
  if (at == ShmServerChannel::kNotPolled) return;
  polled_[at] = polled_.back();
  polled_[at]->polled_at = at;
  channel.polled_at = ShmServerChannel::kNotPolled;  // if it was itself the last
  polled_.pop_back();
}

void ShmServerEndpoint::ParkIdleChannels() {
  for (size_t i = polled_.size(); i-- > 0 && polled_.size() > kPolledFree;) {
    ShmServerChannel& channel = *polled_[i];
    if (tick_ - channel.active_tick < kIdleTicks) continue;
    channel.Arm();
    if (channel.HasRequest()) {
      channel.Disarm();
    } else {
      StopPolling(channel);
    }
  }
}

void ShmServerEndpoint::TakeIncoming(Batch& batch) {
  while (!batch.full()) {
    std::optional<AcceptedSession> accepted;
    {
      const std::lock_guard lock(incoming_mutex_);
      if (incoming_.empty()) return;
      accepted.emplace(std::move(incoming_.back()));
      incoming_.pop_back();
      incoming_count_.store(incoming_.size(), std::memory_order_release);
    }
    try {
      WithoutReserve([&] { Open(*std::move(accepted), batch); });
    } catch (const std::bad_alloc&) {
      // No session for this one: what it has of it goes, and so does its socket.
      load_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

void ShmServerEndpoint::Open(AcceptedSession accepted, Batch& batch) {
  // All memory that the channel's life takes comes first, so that nothing is half done.
  const size_t channels = channels_.size() + 1;
  const auto reserve = [&](auto& list) {
    if (list.capacity() < channels) list.reserve(2 * channels);
  };
  reserve(polled_);
  reserve(unflushed_);
  reserve(ending_);
  frames_.resize(std::max(frames_.size(),
                          kBatchMax * RoundUp(accepted.layout.frame_bytes + 8, kCacheLineBytes)));
  const ChannelId id{next_id_++};
  const auto at =
      channels_.emplace(id, std::make_unique<ShmServerChannel>(id, std::move(accepted))).first;
  ShmServerChannel& channel = *at->second;

  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u64 = static_cast<uint64_t>(id);
  const int added = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, channel.socket(), &event);
  const int error = errno;
  ServerEvent& opened = batch.Add(ServerEvent::Kind::kOpened, id);
  opened.hello = &channel.accepted().hello;
  opened.peer = &channel.accepted().peer;
  opened.session_id = channel.accepted().admitted.session_id();
  opened.role = channel.accepted().role;
  StartPolling(channel);
  if (added != 0) WithReserve([&] { BeginClose(channel, ErrnoStatus(error, "epoll_ctl")); });
}

void ShmServerEndpoint::TakeRequests(Batch& batch) {
  const size_t count = polled_.size();
  if (count == 0) return;
  if (turn_ >= count) turn_ = 0;
  for (size_t seen = 0; seen < count && !batch.full(); ++seen) {
    // A channel that still has requests after its turn comes first no more: the next Poll begins
    // behind it.
    TakeTurn(*polled_[turn_], batch);
    if (++turn_ == count) turn_ = 0;
  }
}

bool ShmServerEndpoint::TakeTurn(ShmServerChannel& channel, Batch& batch) {
  for (size_t i = 0; i < kRequestsPerTurn && !batch.full() && !channel.closing; ++i) {
    std::byte* into = frames_.data() + batch.frame_bytes;
    size_t length = 0;
    const absl::StatusOr<bool> taken = channel.TakeRequest(into, length);
    if (!taken.ok()) {
      BeginClose(channel, taken.status());
      return false;
    }
    if (!*taken) return false;
    batch.Add(ServerEvent::Kind::kRequest, channel.id()).frame = std::span(into, length);
    batch.frame_bytes += RoundUp(length, kCacheLineBytes);
    channel.active_tick = tick_;
  }
  return true;
}

void ShmServerEndpoint::Reply(ChannelId id, const FrameParts& frame) {
  ShmServerChannel* channel = Find(id);
  if (channel == nullptr || channel->closing || !channel->PushReply(frame)) return;
  if (!std::exchange(channel->unflushed, true)) unflushed_.push_back(channel);
}

void ShmServerEndpoint::Flush() {
  for (ShmServerChannel* channel : unflushed_) {
    channel->Wake();
    channel->unflushed = false;
  }
  unflushed_.clear();
}

absl::Status ShmServerEndpoint::Pull(ChannelId id, const PullSource& source, std::byte* into,
                                     uint64_t pull_id) {
  ShmServerChannel* channel = Find(id);
  if (channel == nullptr || channel->closing) {
    return absl::UnavailableError("the channel has ended");
  }
  // The client registered the buffer before it sent the request, but the socket may not have been
  // read since.
  if (!channel->segments().Knows(source.key)) ReadSocket(*channel, source.key);
  // What was read may have ended the channel: BeginClose has dropped its pulls, and none may
  // follow.
  if (channel->closing) return absl::UnavailableError("the channel has ended");
  absl::StatusOr<PullSpan> span =
      channel->segments().Find(source.key, source.address, source.length, into);
  if (!span.ok()) return span.status();
  PullJob job{id, pull_id, *std::move(span)};
  if (source.length <= kPullBytesAtOnce) {
    job.failed = !AdvancePull(job.span, source.length);
  }
  try {
    pulls_.push_back(std::move(job));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("kvd is out of memory");
  }
  return absl::OkStatus();
}

void ShmServerEndpoint::AdvancePulls(Batch& batch) {
  uint64_t budget = kPullBytesPerPoll;
  for (size_t left = pulls_.size(); left > 0 && !batch.full(); --left) {
    PullJob& job = pulls_.front();
    // BeginClose drops a channel's pulls; a job that escaped it would write into memory that has
    // another owner by now.
    const ShmServerChannel* channel = Find(job.channel);
    if (channel == nullptr || channel->closing) {
      pulls_.pop_front();
      continue;
    }
    const uint64_t before = job.span.left_bytes;
    if (!job.failed && before > 0) job.failed = !AdvancePull(job.span, budget);
    budget -= before - job.span.left_bytes;
    if (!job.failed && job.span.left_bytes > 0) {
      try {
        pulls_.push_back(std::move(job));
      } catch (const std::bad_alloc&) {
        return;  // it stays the first
      }
      pulls_.pop_front();
      continue;
    }
    ServerEvent& done = batch.Add(ServerEvent::Kind::kPullDone, job.channel);
    done.pull_id = job.pull_id;
    done.ok = !job.failed;
    pulls_.pop_front();
  }
}

void ShmServerEndpoint::Close(ChannelId id, const absl::Status& reason) {
  ShmServerChannel* channel = Find(id);
  if (channel != nullptr) BeginClose(*channel, reason);
}

void ShmServerEndpoint::BeginClose(ShmServerChannel& channel, const absl::Status& cause) {
  if (std::exchange(channel.closing, true)) return;
  channel.WriteReason(cause);
  std::erase_if(pulls_, [&](const PullJob& job) { return job.channel == channel.id(); });
  ending_.push_back(Ended{channel.id(), cause});
}

void ShmServerEndpoint::EmitClosed(Batch& batch) {
  while (!ending_.empty() && !batch.full()) {
    ended_.push_back(std::move(ending_.back()));
    ending_.pop_back();
    batch.Add(ServerEvent::Kind::kClosed, ended_.back().channel).error = &ended_.back().cause;
    const auto at = channels_.find(ended_.back().channel);
    ShmServerChannel& channel = *at->second;
    StopPolling(channel);
    if (channel.unflushed) std::erase(unflushed_, &channel);
    // The socket may be closed later than it goes (descriptor_closer.h).
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, channel.socket(), nullptr);
    channels_.erase(at);
    load_.fetch_sub(1, std::memory_order_relaxed);
  }
}

bool ShmServerEndpoint::PrepareToSleep() {
  if (incoming_count_.load(std::memory_order_acquire) != 0 || !ending_.empty() || !pulls_.empty()) {
    return false;
  }
  // All are armed before the first is looked at again, so that the stores' cost is paid once
  // (ring.h has the argument).
  for (ShmServerChannel* channel : polled_) channel->Arm();
  armed_ = true;
  for (const ShmServerChannel* channel : polled_) {
    if (channel->HasRequest()) return false;
  }
  return true;
}

void ShmServerEndpoint::DisarmAll() {
  for (ShmServerChannel* channel : polled_) channel->Disarm();
}

ShmServerChannel* ShmServerEndpoint::Find(ChannelId id) {
  const auto at = channels_.find(id);
  return at == channels_.end() ? nullptr : at->second.get();
}

}  // namespace kvd
