// What others ask of an endpoint: room for a connection, and the commands that its poller takes.
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/transport/verbs/server_event_batch.h"
#include "common/transport/verbs/verbs_server_endpoint.h"
#include "common/transport/verbs/wire.h"

namespace kvd::verbs {

// --- Any thread ---

uint32_t VerbsServerEndpoint::CqEntriesOf(uint32_t queue_credits) const {
  return Channel::SendsMax(queue_credits) + queue_credits + 1;
}

absl::Status VerbsServerEndpoint::Reserve(uint32_t queue_credits) {
  const uint32_t entries = CqEntriesOf(queue_credits);
  if (cq_reserved_.fetch_add(entries, std::memory_order_relaxed) + entries > cq_->entries()) {
    cq_reserved_.fetch_sub(entries, std::memory_order_relaxed);
    return absl::ResourceExhaustedError(
        absl::StrCat("server full: ", cq_->entries(), " completion queue entries are taken"));
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

void VerbsServerEndpoint::Ask(ChannelId channel, const Challenge& challenge) {
  Command command;
  command.kind = Command::Kind::kAsk;
  command.channel = channel;
  command.challenge = challenge;
  Send(std::move(command));
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

void VerbsServerEndpoint::ReleaseDevice() {
  Command command;
  command.kind = Command::Kind::kReleaseDevice;
  Send(std::move(command));
}

// --- The poller ---

void VerbsServerEndpoint::TakeNewConnections() {
  std::vector<std::unique_ptr<Channel>> taken;
  {
    const std::lock_guard lock(inbox_mutex_);
    taken.swap(new_connections_);
    inbox_count_.fetch_sub(taken.size(), std::memory_order_release);
  }
  for (std::unique_ptr<Channel>& channel : taken) {
    // One whose messages are not found has its time to say hello, and then ends.
    Channel& added = *channels_.emplace(channel->id, std::move(channel)).first->second;
    by_qp_.insert_or_assign(added.qp_number, &added);
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
    Channel* channel = Find(command.channel);
    const bool alive = channel != nullptr && channel->alive();
    switch (command.kind) {
      case Command::Kind::kAsk:
        if (alive) DoAsk(*channel, command.challenge);
        break;
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
        channel->deadline_ns = RealClock::Get().NowMonotonicNs() + kNotifyNs;
        closing_.push_back(channel->id);
        if (!QueueMessage(
                 *channel, static_cast<uint8_t>(MessageKind::kWelcome),
                 FrameParts{std::as_bytes(std::span(&command.admitted.welcome, 1)), {}, {}})
                 .ok()) {
          BeginDrain(*channel);
          break;
        }
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
      case Command::Kind::kReleaseDevice:
        releasing_ = true;
        break;
    }
  }
}

void VerbsServerEndpoint::DoAsk(Channel& channel, const Challenge& challenge) {
  channel.state = Channel::State::kHello;
  channel.challenged = true;
  if (const absl::Status queued =
          QueueMessage(channel, static_cast<uint8_t>(MessageKind::kChallenge),
                       FrameParts{std::as_bytes(std::span(&challenge, 1)), {}, {}});
      !queued.ok()) {
    return BeginClose(channel, queued, false);
  }
  PostAll(channel);
}

void VerbsServerEndpoint::DoAdmit(Channel& channel, Admitted admitted, Batch& batch) {
  Count(counters_.sessions);
  channel.state = Channel::State::kOpen;
  channel.told_opened = true;
  channel.hello = admitted.hello;
  channel.peer = std::move(admitted.peer);
  channel.admitted = std::move(admitted.session);
  // Executed before Welcome is sent, in the order of the queue.
  if (const MemoryWindow* const window = channel.qp->window(); window != nullptr) {
    channel.window_key = window->rkey();
    channel.sends.AddBind(*window, options_.device->region, kMarkerCookie);
  }
  channel.credits = admitted.welcome.credits;
  channel.granted += channel.credits;
  channel.heard = true;
  ServerEvent& opened = batch.Add(ServerEvent::Kind::kOpened, channel.id);
  opened.hello = &channel.hello;
  opened.peer = &channel.peer;
  opened.session_id = channel.admitted.session_id();
  opened.role = static_cast<Role>(admitted.welcome.role);
  if (const absl::Status queued =
          QueueMessage(channel, static_cast<uint8_t>(MessageKind::kWelcome),
                       FrameParts{std::as_bytes(std::span(&admitted.welcome, 1)), {}, {}});
      !queued.ok()) {
    return BeginClose(channel, queued, false);
  }
  PostAll(channel);
}

}  // namespace kvd::verbs
