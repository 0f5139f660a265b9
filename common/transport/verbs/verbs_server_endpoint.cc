#include "common/transport/verbs/verbs_server_endpoint.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/transport/verbs/wc_status.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {
namespace {

// What a send request was, in its cookie; a message has its slot there.
constexpr uint64_t kPullCookie = ~uint64_t{0};
constexpr uint64_t kKeepAliveCookie = kPullCookie - 1;
constexpr uint64_t kMarkerCookie = kPullCookie - 2;

constexpr uint64_t kPollsPerClock = 64;
constexpr int64_t kClosingTickNs = 20'000'000;
constexpr uint32_t kLateMessagesMax = 64;  // of one that is being told why it is closed

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

void Empty(int fd) {
  uint64_t ignored;
  [[maybe_unused]] const ssize_t got = read(fd, &ignored, sizeof(ignored));
}

void SetTimer(int fd, int64_t interval_ns) {
  itimerspec spec{};
  spec.it_interval = {interval_ns / 1'000'000'000, interval_ns % 1'000'000'000};
  spec.it_value = spec.it_interval;
  timerfd_settime(fd, 0, &spec, nullptr);
}

}  // namespace

class VerbsServerEndpoint::Batch {
 public:
  explicit Batch(std::span<ServerEvent> events)
      : events_(events.first(std::min(events.size(), kBatchMax))) {}

  size_t room() const { return events_.size() - count_; }
  size_t count() const { return count_; }

  ServerEvent& Add(ServerEvent::Kind kind, ChannelId channel) {
    ServerEvent& event = events_[count_++];
    event = ServerEvent{};
    event.kind = kind;
    event.channel = channel;
    return event;
  }

 private:
  std::span<ServerEvent> events_;
  size_t count_ = 0;
};

// --- Making and reaching it ---

absl::StatusOr<std::unique_ptr<VerbsServerEndpoint>> VerbsServerEndpoint::Create(
    const Options& options) {
  std::unique_ptr<VerbsServerEndpoint> endpoint(new VerbsServerEndpoint(options));
  KVD_RETURN_IF_ERROR(endpoint->Init());
  return endpoint;
}

VerbsServerEndpoint::VerbsServerEndpoint(const Options& options)
    : options_(options),
      counters_(*options.counters),
      send_slots_(options.pd, (sizeof(MessagePrefix) + options.frame_bytes + 63) / 64 * 64) {
  told_causes_.reserve(kBatchMax);  // events point into it
}

absl::Status VerbsServerEndpoint::Init() {
  KVD_ASSIGN_OR_RETURN(cq_,
                       CompletionQueue::Create(options_.pd->context(), options_.limits.cq_entries));
  KVD_ASSIGN_OR_RETURN(
      receives_,
      ReceivePool::Create(options_.pd, options_.limits.srq_receives,
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

uint32_t VerbsServerEndpoint::CqEntriesOf(uint32_t queue_credits) const {
  return Channel::SendsMax(queue_credits) + queue_credits + 1;
}

absl::Status VerbsServerEndpoint::Reserve(uint32_t queue_credits) {
  const uint32_t entries = CqEntriesOf(queue_credits);
  if (cq_reserved_.fetch_add(entries, std::memory_order_relaxed) + entries > cq_->entries()) {
    cq_reserved_.fetch_sub(entries, std::memory_order_relaxed);
    return absl::ResourceExhaustedError("no room in the completion queue");
  }
  const absl::Status granted = receives_->Grant(1);
  if (!granted.ok()) cq_reserved_.fetch_sub(entries, std::memory_order_relaxed);
  return granted;
}

void VerbsServerEndpoint::GiveUp(uint32_t queue_credits) {
  cq_reserved_.fetch_sub(CqEntriesOf(queue_credits), std::memory_order_relaxed);
  receives_->Release(1);
}

void VerbsServerEndpoint::Adopt(std::unique_ptr<Channel> channel) {
  load_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard lock(inbox_mutex_);
    new_connections_.push_back(std::move(channel));
    inbox_count_.fetch_add(1, std::memory_order_release);
  }
  Wake();
}

void VerbsServerEndpoint::Send(Command command) {
  {
    const std::lock_guard lock(inbox_mutex_);
    commands_.push_back(std::move(command));
    inbox_count_.fetch_add(1, std::memory_order_release);
  }
  Wake();
}

void VerbsServerEndpoint::Wake() {
  const uint64_t one = 1;
  // Cannot fail in a way that matters: a full counter is as readable as any other.
  [[maybe_unused]] const ssize_t written = write(inbox_event_.get(), &one, sizeof(one));
}

void VerbsServerEndpoint::Admit(ChannelId channel, Admitted admitted) {
  Command command;
  command.kind = Command::Kind::kAdmit;
  command.channel = channel;
  command.admitted = std::move(admitted);
  Send(std::move(command));
}

void VerbsServerEndpoint::Refuse(ChannelId channel, const Welcome& refusal,
                                 const absl::Status& cause) {
  Command command;
  command.kind = Command::Kind::kRefuse;
  command.channel = channel;
  command.admitted.welcome = refusal;
  command.cause = cause;
  Send(std::move(command));
}

void VerbsServerEndpoint::End(ChannelId channel, const absl::Status& cause, bool tell) {
  Command command;
  command.kind = Command::Kind::kEnd;
  command.channel = channel;
  command.tell = tell;
  command.cause = cause;
  Send(std::move(command));
}

void VerbsServerEndpoint::EndByQueuePair(uint32_t qp_number, const absl::Status& cause) {
  Command command;
  command.kind = Command::Kind::kEnd;
  command.qp_number = qp_number;
  command.cause = cause;
  Send(std::move(command));
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

// --- Polling ---

size_t VerbsServerEndpoint::Poll(std::span<ServerEvent> events) {
  Batch batch(events);
  told_causes_.clear();
  if (!lent_.empty()) {
    receives_->GiveBack(lent_);
    lent_.clear();
  }
  const bool woken = std::exchange(armed_, false);
  if (woken) Disarm();
  if (woken || ++polls_ % kPollsPerClock == 0) Tick(NowNs());
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
    if (ready[i].data.fd == cq_->fd()) {
      cq_->TakeEvents();
    } else {
      Empty(ready[i].data.fd);
    }
  }
}

void VerbsServerEndpoint::TakeNewConnections() {
  std::vector<std::unique_ptr<Channel>> taken;
  {
    const std::lock_guard lock(inbox_mutex_);
    taken.swap(new_connections_);
    inbox_count_.fetch_sub(taken.size(), std::memory_order_release);
  }
  for (std::unique_ptr<Channel>& channel : taken) {
    by_qp_[channel->qp_number] = channel.get();
    channels_[channel->id] = std::move(channel);
  }
}

void VerbsServerEndpoint::TakeCommands(Batch& batch) {
  while (batch.room() > 0) {
    Command command;
    {
      const std::lock_guard lock(inbox_mutex_);
      if (commands_.empty()) return;
      command = std::move(commands_.front());
      commands_.pop_front();
      inbox_count_.fetch_sub(1, std::memory_order_release);
    }
    Channel* channel =
        command.qp_number != 0 ? FindByQueuePair(command.qp_number) : Find(command.channel);
    const bool alive = channel != nullptr && channel->alive();
    switch (command.kind) {
      case Command::Kind::kAdmit:
        if (alive) {
          DoAdmit(*channel, std::move(command.admitted), batch);
        } else {
          receives_->Release(command.admitted.welcome.credits);
        }
        break;
      case Command::Kind::kRefuse:
        if (!alive) break;
        channel->cause = command.cause;
        channel->state = Channel::State::kNotifying;
        channel->deadline_ns = NowNs() + kNotifyNs;
        closing_.push_back(channel->id);
        QueueMessage(*channel, static_cast<uint8_t>(MessageKind::kWelcome),
                     FrameParts{std::as_bytes(std::span(&command.admitted.welcome, 1)), {}, {}});
        channel->sends.SignalLast();
        PostAll(*channel);
        break;
      case Command::Kind::kEnd:
        if (channel != nullptr && command.tell) {
          BeginClose(*channel, command.cause, true);
        } else if (alive) {
          BeginClose(*channel, command.cause, false);
        } else if (channel != nullptr && channel->state == Channel::State::kNotifying) {
          BeginDrain(*channel);  // nobody is there to be told
        }
        break;
    }
  }
}

void VerbsServerEndpoint::DoAdmit(Channel& channel, Admitted admitted, Batch& batch) {
  Count(counters_.sessions);
  channel.state = Channel::State::kOpen;
  channel.told_opened = true;
  channel.hello = admitted.hello;
  channel.peer = std::move(admitted.peer);
  channel.admitted = std::move(admitted.session);
  channel.credits = admitted.welcome.credits;
  channel.granted += channel.credits;
  channel.heard = true;
  ServerEvent& opened = batch.Add(ServerEvent::Kind::kOpened, channel.id);
  opened.hello = &channel.hello;
  opened.peer = &channel.peer;
  opened.session_id = channel.admitted.session_id();
  QueueMessage(channel, static_cast<uint8_t>(MessageKind::kWelcome),
               FrameParts{std::as_bytes(std::span(&admitted.welcome, 1)), {}, {}});
  PostAll(channel);
}

void VerbsServerEndpoint::EmitPulls(Batch& batch) {
  while (!done_pulls_.empty() && batch.room() > 0) {
    const DonePull done = done_pulls_.front();
    done_pulls_.pop_front();
    ServerEvent& event = batch.Add(ServerEvent::Kind::kPullDone, done.channel);
    event.pull_id = done.id;
    event.ok = true;
  }
}

void VerbsServerEndpoint::EmitClosed(Batch& batch) {
  while (!gone_.empty() && batch.room() > 0) {
    const ChannelId id = gone_.back();
    gone_.pop_back();
    const auto at = channels_.find(id);
    Channel& channel = *at->second;
    if (channel.told_opened) {
      told_causes_.push_back(channel.cause);
      batch.Add(ServerEvent::Kind::kClosed, id).error = &told_causes_.back();
    }
    receives_->Release(channel.granted);
    cq_reserved_.fetch_sub(CqEntriesOf(channel.queue_credits), std::memory_order_relaxed);
    load_.fetch_sub(1, std::memory_order_relaxed);
    channels_.erase(at);
    options_.owner->Retired(id);
  }
}

// --- Completions ---

void VerbsServerEndpoint::TakeCompletions(Batch& batch) {
  if (batch.room() == 0) return;
  std::array<ibv_wc, kBatchMax> completions;
  size_t count = std::min(batch.room(), ready_count_);
  if (count > 0) {
    std::copy_n(ready_.begin(), count, completions.begin());
    std::copy(ready_.begin() + static_cast<std::ptrdiff_t>(count),
              ready_.begin() + static_cast<std::ptrdiff_t>(ready_count_), ready_.begin());
    ready_count_ -= count;
  } else {
    count = cq_->Poll(std::span(completions).first(std::min(batch.room(), kBatchMax)));
  }
  for (const ibv_wc& completion : std::span(completions).first(count)) {
    if ((completion.wr_id & kReceiveBit) != 0) {
      Received(completion, batch);
    } else {
      Sent(completion);
    }
  }
}

void VerbsServerEndpoint::Received(const ibv_wc& completion, Batch& batch) {
  const auto slot = static_cast<uint32_t>(completion.wr_id);
  Channel* channel = FindByQueuePair(completion.qp_num);
  if (completion.status == IBV_WC_SUCCESS && channel != nullptr) {
    return TakeMessage(*channel, slot, completion.byte_len, batch);
  }
  receives_->GiveBack(std::span(&slot, 1));
  if (IsFlushed(completion.status)) return Count(counters_.flushed);
  if (channel == nullptr || completion.status == IBV_WC_SUCCESS) return;
  if (channel->alive()) Count(counters_.completion_errors);
  // A message longer than any of ours is the peer's fault, and it should know.
  const absl::Status cause =
      WcStatus(completion.status, completion.vendor_err, "receiving a request");
  BeginClose(
      *channel,
      completion.status == IBV_WC_LOC_LEN_ERR ? absl::InvalidArgumentError(cause.message()) : cause,
      false);
}

void VerbsServerEndpoint::TakeMessage(Channel& channel, uint32_t slot, uint32_t bytes,
                                      Batch& batch) {
  MessageKind kind{};
  std::span<const std::byte> body;
  absl::Status judged = ParseMessage({receives_->At(slot), bytes}, kind, body);
  channel.heard = true;
  if (channel.state == Channel::State::kOpen && judged.ok()) {
    if (kind != MessageKind::kFrame || body.empty() || body.size() > options_.frame_bytes) {
      judged = absl::InvalidArgumentError(
          absl::StrCat("a message of ", body.size(), " bytes that is no request"));
    } else if (channel.outstanding == channel.credits) {
      judged = absl::InvalidArgumentError(
          absl::StrCat("more requests outstanding than the ", channel.credits, " credits granted"));
    } else {
      ++channel.outstanding;
      batch.Add(ServerEvent::Kind::kRequest, channel.id).frame = body;
      lent_.push_back(slot);
      return;
    }
  } else if (channel.state == Channel::State::kHello && judged.ok()) {
    if (kind == MessageKind::kHello) {
      channel.state = Channel::State::kAdmitting;
      options_.owner->HelloArrived(channel.id, body);
    } else {
      judged = absl::InvalidArgumentError("the first message is no hello");
    }
  } else if (channel.state == Channel::State::kAdmitting) {
    judged = absl::InvalidArgumentError("spoke before it was admitted");
  } else if (channel.state == Channel::State::kNotifying &&
             ++channel.outstanding > channel.credits + kLateMessagesMax) {
    BeginDrain(channel);  // it does not listen
  }
  receives_->GiveBack(std::span(&slot, 1));
  if (judged.ok()) return;
  if (channel.alive()) Count(counters_.protocol_errors);
  BeginClose(channel, judged, true);
}

void VerbsServerEndpoint::Sent(const ibv_wc& completion) {
  Channel* channel = FindByQueuePair(completion.qp_num);
  if (channel == nullptr) return;
  const bool ok = completion.status == IBV_WC_SUCCESS;
  if (IsFlushed(completion.status)) Count(counters_.flushed);
  // Requests before the one that failed were done: they complete in order.
  const uint64_t number = completion.wr_id;
  if (!ok && number > 0)
    channel->sends.Retire(number - 1, [&](uint64_t cookie) { SendDone(*channel, cookie, true); });
  channel->sends.Retire(number, [&](uint64_t cookie) { SendDone(*channel, cookie, ok); });
  if (!ok && channel->alive()) {
    Count(counters_.completion_errors);
    BeginClose(*channel,
               WcStatus(completion.status, completion.vendor_err, "talking to the client"), false);
    return;
  }
  if (channel->state == Channel::State::kNotifying && (!ok || channel->sends.empty())) {
    BeginDrain(*channel);
  } else if (channel->state == Channel::State::kDraining && channel->sends.empty()) {
    FinishDrain(*channel);
  } else if (channel->state == Channel::State::kOpen && !channel->pulls.empty()) {
    PumpPulls(*channel);
  }
}

void VerbsServerEndpoint::SendDone(Channel& channel, uint64_t cookie, bool ok) {
  if (cookie == kMarkerCookie) return;
  if (cookie == kKeepAliveCookie) {
    channel.keep_alive_under_way = false;
    return;
  }
  if (cookie != kPullCookie) return send_slots_.Give(static_cast<uint32_t>(cookie));
  PullJob& job = channel.pulls.front();
  --channel.reads_under_way;
  --job.under_way;
  channel.heard = true;
  if (!ok || job.under_way > 0 || job.posted_bytes < job.length) return;
  // Of a channel that is being closed, nothing is told but its end.
  if (channel.alive()) {
    Count(counters_.pulls);
    Count(counters_.pulled_bytes, job.length);
    done_pulls_.push_back(DonePull{channel.id, job.id});
  }
  channel.pulls.pop_front();
}

// --- Replies and pulls ---

bool VerbsServerEndpoint::QueueMessage(Channel& channel, uint8_t kind, const FrameParts& body) {
  if (channel.sends.room() <=
      (kind == static_cast<uint8_t>(MessageKind::kFrame) ? Channel::kReservedSends : 1))
    return false;
  const absl::StatusOr<uint32_t> slot = send_slots_.Take();
  if (!slot.ok()) return false;
  std::byte* at = send_slots_.At(*slot);
  const auto body_bytes = static_cast<uint32_t>(body.bytes());
  const MessagePrefix prefix{kind, {}, body_bytes};
  std::memcpy(at, &prefix, sizeof(prefix));
  std::byte* to = std::copy(body.header.begin(), body.header.end(), at + sizeof(prefix));
  to += body.key.copy(reinterpret_cast<char*>(to), body.key.size());
  body.payload.copy(reinterpret_cast<char*>(to), body.payload.size());
  const uint32_t bytes = body_bytes + static_cast<uint32_t>(sizeof(prefix));
  channel.sends.AddSend({at, send_slots_.KeyOf(*slot), bytes},
                        bytes <= channel.qp->inline_bytes_max(), *slot);
  return true;
}

void VerbsServerEndpoint::Reply(ChannelId id, const FrameParts& frame) {
  Channel* channel = Find(id);
  if (channel == nullptr || channel->state != Channel::State::kOpen || channel->outstanding == 0)
    return;
  KVD_CHECK(frame.bytes() <= options_.frame_bytes);
  --channel->outstanding;
  if (!QueueMessage(*channel, static_cast<uint8_t>(MessageKind::kFrame), frame)) {
    BeginClose(*channel,
               absl::ResourceExhaustedError("the client's device acknowledges no replies"), false);
    return;
  }
  if (!std::exchange(channel->unflushed, true)) unflushed_.push_back(channel);
}

void VerbsServerEndpoint::Flush() {
  for (size_t i = 0; i < unflushed_.size(); ++i) {
    unflushed_[i]->unflushed = false;
    if (unflushed_[i]->state == Channel::State::kOpen) PostAll(*unflushed_[i]);
  }
  unflushed_.clear();
}

void VerbsServerEndpoint::PostAll(Channel& channel) {
  const absl::Status posted = channel.sends.Post(channel.qp->get());
  if (posted.ok()) return;
  if (channel.alive()) {
    BeginClose(channel, posted, false);
  } else if (channel.state == Channel::State::kNotifying) {
    BeginDrain(channel);
  }
}

absl::Status VerbsServerEndpoint::Pull(ChannelId id, const PullSource& source, std::byte* into,
                                       uint64_t pull_id) {
  Channel* channel = Find(id);
  if (channel == nullptr || channel->state != Channel::State::kOpen) {
    return absl::UnavailableError("the channel has ended");
  }
  if (source.length == 0 || source.address + source.length < source.address) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pull of ", source.length, " bytes at ", source.address));
  }
  KVD_CHECK(options_.region->Contains(into, source.length));
  PullJob job;
  job.id = pull_id;
  job.address = source.address;
  job.key = source.key;
  job.length = source.length;
  job.into = into;
  channel->pulls.push_back(job);
  PumpPulls(*channel);
  return absl::OkStatus();
}

void VerbsServerEndpoint::PumpPulls(Channel& channel) {
  for (PullJob& job : channel.pulls) {
    while (job.posted_bytes < job.length) {
      if (channel.reads_under_way >= channel.reads_max ||
          channel.sends.room() <= Channel::kReservedSends)
        break;
      const uint64_t bytes =
          std::min(options_.limits.read_piece_bytes, job.length - job.posted_bytes);
      channel.sends.AddRead(
          {job.into + job.posted_bytes, options_.region->lkey(), static_cast<uint32_t>(bytes)},
          job.address + job.posted_bytes, job.key, kPullCookie);
      channel.sends.SignalLast();  // each: the next piece goes out when one has come
      job.posted_bytes += bytes;
      ++job.under_way;
      ++channel.reads_under_way;
    }
    if (job.posted_bytes < job.length) break;
  }
  PostAll(channel);
}

// --- The end of a channel ---

void VerbsServerEndpoint::Close(ChannelId id, const absl::Status& reason) {
  if (Channel* channel = Find(id)) BeginClose(*channel, reason, true);
}

void VerbsServerEndpoint::BeginClose(Channel& channel, const absl::Status& cause, bool tell) {
  if (!channel.alive()) return;
  channel.cause = cause;
  channel.state = Channel::State::kNotifying;
  channel.deadline_ns = NowNs() + kNotifyNs;
  closing_.push_back(channel.id);
  const CloseNotice notice = MakeCloseNotice(cause);
  if (tell && QueueMessage(channel, static_cast<uint8_t>(MessageKind::kClose),
                           FrameParts{std::as_bytes(std::span(&notice, 1)), {}, {}})) {
    channel.sends.SignalLast();
    PostAll(channel);
  } else {
    BeginDrain(channel);
  }
}

void VerbsServerEndpoint::BeginDrain(Channel& channel) {
  if (channel.state != Channel::State::kNotifying) return;
  channel.state = Channel::State::kDraining;
  channel.deadline_ns = NowNs() + kDrainNs;
  channel.qp->ToError();
  if (channel.sends.empty()) return FinishDrain(channel);
  // What was done without a signal gives no completion: the marker's says that all before it is
  // over.
  if (channel.sends.room() > 0) channel.sends.AddSend({nullptr, 0, 0}, false, kMarkerCookie);
  channel.sends.SignalLast();
  if (!channel.sends.Post(channel.qp->get()).ok()) FinishDrain(channel);
}

void VerbsServerEndpoint::FinishDrain(Channel& channel) {
  if (channel.state != Channel::State::kDraining) return;
  if (!channel.sends.empty()) channel.qp->Destroy();  // or the device might still write for it
  channel.sends.RetireAll([&](uint64_t cookie) { SendDone(channel, cookie, false); });
  channel.state = Channel::State::kGone;
  channel.pulls.clear();
  std::erase_if(done_pulls_, [&](const DonePull& done) { return done.channel == channel.id; });
  std::erase(closing_, channel.id);
  if (channel.unflushed) std::erase(unflushed_, &channel);
  channel.unflushed = false;
  by_qp_.erase(channel.qp_number);
  gone_.push_back(channel.id);
}

// --- Time and sleep ---

void VerbsServerEndpoint::Tick(int64_t now_ns) {
  for (size_t i = closing_.size(); i-- > 0;) {
    Channel& channel = *Find(closing_[i]);
    if (now_ns < channel.deadline_ns) continue;
    if (channel.state == Channel::State::kNotifying) {
      BeginDrain(channel);
    } else {
      FinishDrain(channel);
    }
  }
  if (now_ns < tick_at_ns_) return;
  tick_at_ns_ = now_ns + kTickNs;
  // A READ of nothing asks only the peer's device whether it is there. A peer that is stopped is
  // not dead.
  for (const auto& [id, channel] : channels_) {
    if (channel->state != Channel::State::kOpen || std::exchange(channel->heard, false)) continue;
    if (channel->keep_alive_under_way || channel->sends.room() <= Channel::kReservedSends) continue;
    channel->keep_alive_under_way = true;
    Count(counters_.keep_alives);
    channel->sends.AddRead({nullptr, 0, 0}, 0, 0, kKeepAliveCookie);
    channel->sends.SignalLast();
    PostAll(*channel);
  }
}

bool VerbsServerEndpoint::PrepareToSleep() {
  if (inbox_count_.load(std::memory_order_acquire) != 0 || !gone_.empty() || !done_pulls_.empty() ||
      ready_count_ > 0) {
    return false;
  }
  armed_ = true;
  if (!cq_->Arm().ok()) return false;
  ready_count_ = cq_->Poll(ready_);
  if (ready_count_ > 0) return false;
  const int64_t tick_ns = !closing_.empty() ? kClosingTickNs : channels_.empty() ? 0 : kTickNs;
  if (std::exchange(timer_ns_, tick_ns) != tick_ns) SetTimer(timer_.get(), tick_ns);
  return true;
}

}  // namespace kvd::verbs
