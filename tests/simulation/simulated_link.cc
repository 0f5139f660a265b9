#include "tests/simulation/simulated_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "tests/simulation/uncounted.h"

namespace kvd::test {

void FrameQueue::Push(const FrameParts& frame) {
  std::vector<std::byte> bytes;
  if (!spare_.empty()) {
    bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  bytes.clear();
  const auto append = [&bytes](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  append(frame.header);
  append(std::as_bytes(std::span(frame.key)));
  append(std::as_bytes(std::span(frame.payload)));
  frames_.push_back(std::move(bytes));
}

std::span<const std::byte> FrameQueue::Pop() {
  spare_.push_back(std::move(popped_));
  popped_ = std::move(frames_.front());
  frames_.pop_front();
  return popped_;
}

void SimulatedTransfer::GoOn(uint64_t bytes) {
  const uint64_t more = std::min(bytes, length - done);
  if (more != 0) std::memcpy(into + done, from + done, more);
  done += more;
}

void SimulatedLink::Break(std::string_view why) {
  if (client_status.ok()) client_status = absl::UnavailableError(ToAbsl(why));
  if (server_status.ok()) server_status = absl::UnavailableError(ToAbsl(why));
}

void SimulatedEndpoint::Open(std::shared_ptr<SimulatedLink> link) {
  channels_.emplace(ChannelId{next_channel_++}, Channel{std::move(link)});
}

size_t SimulatedEndpoint::Poll(std::span<ServerEvent> events) {
  return Counting::Uncounted([&]() {
    told_.clear();
    size_t count = 0;
    for (auto& [id, channel] : channels_) {
      if (channel.link->delayed && !channel.link->over()) FinishPulls(id, *channel.link);
    }
    for (; count < events.size() && !pulled_.empty() && !pulls_held_; pulled_.pop_back()) {
      events[count++] = pulled_.back();
    }
    for (auto at = channels_.begin(); at != channels_.end() && count < events.size();) {
      Channel& channel = at->second;
      SimulatedLink& link = *channel.link;
      ServerEvent event;
      event.channel = at->first;
      if (!channel.announced) {
        channel.announced = true;
        event.kind = ServerEvent::Kind::kOpened;
        event.hello = &link.hello;
        event.peer = &link.peer;
        event.session_id = link.welcome.session_id;
        event.role = static_cast<Role>(link.welcome.role);
        events[count++] = event;
      } else if (link.over() && !(link.serves_arrived && link.RequestThere())) {
        if (closes_held_) {
          ++at;
          continue;
        }
        event.kind = ServerEvent::Kind::kClosed;
        event.error = link.server_status.ok() ? &link.client_status : &link.server_status;
        events[count++] = event;
        told_.push_back(channel.link);
        on_gone_(link.welcome.session_id);
        at = channels_.erase(at);
        continue;
      } else if (link.RequestThere()) {
        link.requests_arrived -= link.delayed ? 1 : 0;
        event.kind = ServerEvent::Kind::kRequest;
        event.frame = link.requests.Pop();
        events[count++] = event;
      }
      ++at;
    }
    return count;
  });
}

void SimulatedEndpoint::Reply(ChannelId channel, const FrameParts& frame) {
  return Counting::Uncounted([&]() {
    const auto found = channels_.find(channel);
    if (found != channels_.end()) found->second.link->replies.Push(frame);
  });
}

absl::Status SimulatedEndpoint::Pull(ChannelId channel, const PullSource& source, std::byte* into,
                                     uint64_t pull_id) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return absl::InvalidArgumentError("the session is over");
  if (found->second.link->over()) return absl::InvalidArgumentError("the session has broken");
  const auto& buffers = found->second.link->buffers;
  const auto buffer = buffers.find(source.key);
  if (buffer == buffers.end()) return absl::InvalidArgumentError("no such buffer");
  const uint64_t from = source.address - buffer->second.address;
  const std::span<std::byte> bytes = buffer->second.bytes;
  if (from > bytes.size() || source.length > bytes.size() - from) {
    return absl::InvalidArgumentError("outside of the buffer");
  }
  SimulatedLink& link = *found->second.link;
  SimulatedTransfer pull{bytes.data() + from, into, source.length, pull_id, 0};
  if (link.delayed) {
    link.pulls.push_back(pull);
    return absl::OkStatus();
  }
  pull.GoOn(pull.length);
  ServerEvent event;
  event.kind = ServerEvent::Kind::kPullDone;
  event.channel = channel;
  event.pull_id = pull_id;
  event.ok = true;
  pulled_.push_back(event);
  return absl::OkStatus();
}

// Those that have ended become events.
void SimulatedEndpoint::FinishPulls(ChannelId channel, SimulatedLink& link) {
  for (; !link.pulls.empty() && link.pulls.front().over(); link.pulls.pop_front()) {
    ServerEvent event;
    event.kind = ServerEvent::Kind::kPullDone;
    event.channel = channel;
    event.pull_id = link.pulls.front().id;
    event.ok = true;
    pulled_.push_back(event);
  }
}

void SimulatedEndpoint::BreakSessions() {
  for (auto& [id, channel] : channels_) {
    SimulatedLink& link = *channel.link;
    if (link.client_status.ok()) link.client_status = absl::UnavailableError("broken");
  }
}

void SimulatedEndpoint::Break(std::string_view why) {
  for (auto& [id, channel] : channels_) {
    channel.link->Break(why);
    channel.link->serves_arrived = false;
  }
}

void SimulatedEndpoint::Close(ChannelId channel, const absl::Status& reason) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  SimulatedLink& link = *found->second.link;
  if (link.server_status.ok()) link.server_status = reason;
  if (link.client_status.ok()) link.client_status = absl::UnavailableError(reason.message());
}

SimulatedChannel::SimulatedChannel(std::shared_ptr<SimulatedLink> link, bool mapped,
                                   std::function<bool()> turn)
    : link_(std::move(link)), turn_(std::move(turn)) {
  welcome_ = link_->welcome;
  if (mapped) window_ = link_->region;
}

SimulatedChannel::~SimulatedChannel() {
  if (link_->client_status.ok())
    link_->client_status = absl::UnavailableError("the client has left");
  link_->reads.clear();
}

absl::StatusOr<TransferBuffer> SimulatedChannel::Allocate(size_t bytes) {
  KVD_ASSIGN_OR_RETURN(auto pages, SharedPages::Create(bytes));
  return Register(std::move(pages));
}

absl::StatusOr<TransferBuffer> SimulatedChannel::Register(std::shared_ptr<SharedPages> pages) {
  TransferBuffer buffer;
  buffer.bytes = std::span(pages->base(), pages->length_bytes());
  buffer.key = next_key_++;
  buffer.address = reinterpret_cast<uint64_t>(pages->base());
  link_->buffers.emplace(buffer.key, buffer);
  pages_.emplace(buffer.key, std::move(pages));
  return buffer;
}

void SimulatedChannel::Free(const TransferBuffer& buffer) {
  const auto lies_in = [&buffer](const std::byte* at) {
    return at >= buffer.bytes.data() && at < buffer.bytes.data() + buffer.bytes.size();
  };
  // What may still land in it is waited for.
  const auto lands = [&](const SimulatedTransfer& read) {
    return !read.over() && !link_->over() && lies_in(read.into);
  };
  while (link_->delayed && std::any_of(link_->reads.begin(), link_->reads.end(), lands)) turn_();
  // What the server fetches from it fails, as over RDMA, and that ends the session.
  for (const SimulatedTransfer& pull : link_->pulls) {
    if (lies_in(pull.from)) link_->Break("memory was given back that the server fetched from");
  }
  link_->buffers.erase(buffer.key);
  pages_.erase(buffer.key);
}

absl::Status SimulatedChannel::PostReads(std::span<const ReadOp> ops) {
  return Counting::Uncounted([&]() -> absl::Status {
    if (!link_->client_status.ok()) return link_->client_status;
    if (link_->reads.size() + ops.size() > kReadsMax)
      return absl::ResourceExhaustedError("READ depth");
    for (const ReadOp& op : ops) {
      const uint64_t offset = ToBytes(op.offset);
      if (offset > link_->region.size() || op.length > link_->region.size() - offset) {
        return absl::InvalidArgumentError("a READ outside of the region");
      }
    }
    for (const ReadOp& op : ops) {
      link_->reads.push_back(
          {link_->region.data() + ToBytes(op.offset), op.into, op.length, op.id, 0});
    }
    return absl::OkStatus();
  });
}

size_t SimulatedChannel::PollReads(std::span<ReadCompletion> completions) {
  return Counting::Uncounted([&]() {
    size_t count = 0;
    for (; count < completions.size() && link_->ReadThere(); link_->reads.pop_front()) {
      SimulatedTransfer& read = link_->reads.front();
      if (!link_->delayed) read.GoOn(read.length);
      completions[count++] = {read.id, read.over()};
    }
    return count;
  });
}

absl::Status SimulatedChannel::Send(const FrameParts& frame) {
  return Counting::Uncounted([&]() -> absl::Status {
    if (!link_->client_status.ok()) return link_->client_status;
    if (frame.bytes() > welcome_.frame_bytes) return absl::InvalidArgumentError("too long a frame");
    if (link_->credits_taken == welcome_.credits) return absl::ResourceExhaustedError("no credit");
    ++link_->credits_taken;
    link_->requests.Push(frame);
    return absl::OkStatus();
  });
}

std::span<const std::byte> SimulatedChannel::PollReply() {
  return Counting::Uncounted([&]() -> std::span<const std::byte> {
    if (!link_->ReplyThere()) return {};
    link_->replies_arrived -= link_->delayed ? 1 : 0;
    --link_->credits_taken;
    return link_->replies.Pop();
  });
}

absl::Status SimulatedChannel::Wait(int64_t deadline_ns) {
  return Counting::Uncounted([&]() -> absl::Status {
    // Also where something is there: it may be for somebody who does not ask for it yet.
    if (link_->delayed) turn_();
    while (!link_->ReadThere() && !link_->ReplyThere()) {
      if (!link_->client_status.ok()) return link_->client_status;
      if (!turn_() && RealClock::Get().NowMonotonicNs() > deadline_ns) {
        return absl::DeadlineExceededError("nobody has anything to do");
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace kvd::test
