// What an endpoint's completion queue brings: messages of peers, and its own requests that are
// done.
#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "common/transport/verbs/server_event_batch.h"
#include "common/transport/verbs/verbs_server_endpoint.h"
#include "common/transport/verbs/wc_status.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {

namespace {

constexpr uint32_t kLateMessagesMax = 64;  // of one that is being told why it is closed

}  // namespace

void VerbsServerEndpoint::TakeCompletions(Batch& batch) {
  if (batch.room() == 0 || cq_ == nullptr) return;
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
    if (kind == (channel.challenged ? MessageKind::kAnswer : MessageKind::kHello)) {
      channel.state = Channel::State::kAdmitting;
      options_.owner->HelloArrived(channel.id, body);
    } else {
      judged = absl::InvalidArgumentError(channel.challenged ? "the message is no answer to the challenge"
                                                             : "the first message is no hello");
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
  } else if (channel->state == Channel::State::kDraining && !channel->sends.under_way()) {
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

}  // namespace kvd::verbs
