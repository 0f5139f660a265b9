// An endpoint's messages to its peers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/transport/verbs/verbs_server_endpoint.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {

absl::Status VerbsServerEndpoint::QueueMessage(Channel& channel, uint8_t kind, const FrameParts& body) {
  if (channel.sends.room() <=
      (kind == static_cast<uint8_t>(MessageKind::kFrame) ? Channel::kReservedSends : 1))
    return absl::ResourceExhaustedError("the client's device acknowledges no replies");
  KVD_ASSIGN_OR_RETURN(const uint32_t slot, send_slots_.Take());
  std::byte* at = send_slots_.At(slot);
  const auto body_bytes = static_cast<uint32_t>(body.bytes());
  const MessagePrefix prefix{kind, {}, body_bytes};
  std::memcpy(at, &prefix, sizeof(prefix));
  std::byte* to = std::copy(body.header.begin(), body.header.end(), at + sizeof(prefix));
  to += body.key.copy(reinterpret_cast<char*>(to), body.key.size());
  body.payload.copy(reinterpret_cast<char*>(to), body.payload.size());
  const uint32_t bytes = body_bytes + static_cast<uint32_t>(sizeof(prefix));
  channel.sends.AddSend({at, send_slots_.KeyOf(slot), bytes},
                        bytes <= channel.qp->inline_bytes_max(), slot);
  return absl::OkStatus();
}

void VerbsServerEndpoint::Reply(ChannelId id, const FrameParts& frame) {
  Channel* channel = Find(id);
  if (channel == nullptr || channel->state != Channel::State::kOpen || channel->outstanding == 0)
    return;
  KVD_CHECK(frame.bytes() <= options_.frame_bytes);
  --channel->outstanding;
  if (const absl::Status queued =
          QueueMessage(*channel, static_cast<uint8_t>(MessageKind::kFrame), frame);
      !queued.ok()) {
    return BeginClose(*channel, queued, false);
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

}  // namespace kvd::verbs
