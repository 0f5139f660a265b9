// How a channel ends, in one path; and how one that is silent is found to be dead.
#include <utility>

#include "common/base/clock.h"
#include "common/transport/verbs/server_event_batch.h"
#include "common/transport/verbs/verbs_server_endpoint.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {

namespace {

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

}  // namespace

void VerbsServerEndpoint::Close(ChannelId id, const absl::Status& reason) {
  if (Channel* channel = Find(id)) BeginClose(*channel, reason, true);
}

void VerbsServerEndpoint::BeginClose(Channel& channel, const absl::Status& cause, bool tell) {
  if (!channel.alive()) return;
  channel.cause = cause;
  channel.state = Channel::State::kNotifying;
  channel.deadline_ns = NowNs() + kNotifyNs;
  closing_.push_back(channel.id);
  // Who is sent away reads nothing more, also if it does not listen. Others are told first: the end
  // of its window would end the connection of a client that reads.
  if (channel.window_key != 0 && absl::IsPermissionDenied(cause) && channel.sends.room() > 2)
    channel.sends.AddInvalidate(channel.window_key, kMarkerCookie);
  const CloseNotice notice = MakeCloseNotice(cause);
  if (tell && QueueMessage(channel, static_cast<uint8_t>(MessageKind::kClose),
                           FrameParts{std::as_bytes(std::span(&notice, 1)), {}, {}})
                  .ok()) {
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
  // What was done without a signal gives no completion: the marker's says that all before it is
  // over. And messages that had arrived come before it. Some devices forget what of a queue pair
  // that is destroyed nobody has polled, and with it the shared receives that it took.
  if (channel.sends.room() > 0) channel.sends.AddSend({nullptr, 0, 0}, false, kMarkerCookie);
  channel.sends.SignalLast();
  // Where the device refuses that too, it still flushes what it took before.
  if (!channel.sends.Post(channel.qp->get()).ok() && !channel.sends.under_way())
    FinishDrain(channel);
}

void VerbsServerEndpoint::FinishDrain(Channel& channel) {
  if (channel.state != Channel::State::kDraining) return;
  if (channel.sends.under_way()) channel.qp->Destroy();  // or the device might still write for it
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

}  // namespace kvd::verbs
