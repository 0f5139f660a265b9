// One session between a client and a poller of the same process: queues, and memory that both may
// touch.
//
// One thread does everything, in an order that the caller decides. Nothing is lost, delayed or
// torn, unless a link is `delayed`: then nothing arrives by itself, and whoever plays the network
// has frames arrive, READs and pulls go on by some bytes, and sessions break.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/transport/client_channel.h"
#include "common/transport/server_endpoint.h"

namespace kvd::test {

// Frames that are sent one after another, without an allocation for each.
class FrameQueue {
 public:
  void Push(const FrameParts& frame);
  bool empty() const { return frames_.empty(); }
  size_t size() const { return frames_.size(); }
  // The oldest, removed; valid until the next Pop.
  std::span<const std::byte> Pop();

 private:
  std::deque<std::vector<std::byte>> frames_;
  std::vector<std::vector<std::byte>> spare_;
  std::vector<std::byte> popped_;
};

// Bytes on their way, of which the first have arrived.
struct SimulatedTransfer {
  const std::byte* from = nullptr;
  std::byte* into = nullptr;
  uint64_t length = 0;
  uint64_t id = 0;
  uint64_t done = 0;

  bool over() const { return done == length; }
  void GoOn(uint64_t bytes);
};

struct SimulatedLink {
  PeerIdentity peer;
  Hello hello{};
  Welcome welcome{};
  std::span<std::byte> region;
  FrameQueue requests;
  FrameQueue replies;
  uint32_t credits_taken = 0;
  std::map<uint32_t, TransferBuffer> buffers;
  absl::Status client_status;           // why the session is over, as the client sees it
  absl::Status server_status;           // and as the server does
  std::deque<SimulatedTransfer> reads;  // posted and not polled

  // Of delayed ones.
  bool delayed = false;
  size_t requests_arrived = 0;  // of the oldest
  size_t replies_arrived = 0;
  bool serves_arrived = false;  // once broken: what had arrived is served before the server notices
  std::deque<SimulatedTransfer> pulls;  // that the server has begun

  bool over() const { return !client_status.ok() || !server_status.ok(); }
  bool RequestThere() const { return !requests.empty() && (!delayed || requests_arrived > 0); }
  bool ReplyThere() const { return !replies.empty() && (!delayed || replies_arrived > 0); }
  bool ReadThere() const { return !reads.empty() && (!delayed || over() || reads.front().over()); }
  void Break(std::string_view why);
};

// The poller's end of all its links.
class SimulatedEndpoint : public ServerEndpoint {
 public:
  void Open(std::shared_ptr<SimulatedLink> link);

  size_t Poll(std::span<ServerEvent> events) override;
  void Reply(ChannelId channel, const FrameParts& frame) override;
  void Flush() override {}
  absl::Status Pull(ChannelId channel, const PullSource& source, std::byte* into,
                    uint64_t pull_id) override;
  void Close(ChannelId channel, const absl::Status& reason) override;
  bool PrepareToSleep() override { return false; }
  int event_fd() const override { return -1; }

  // While held, events of this kind (kPullDone or kClosed) do not come: a pull that takes long, a
  // session whose end nobody has noticed yet.
  void Hold(ServerEvent::Kind kind, bool held) {
    (kind == ServerEvent::Kind::kPullDone ? pulls_held_ : closes_held_) = held;
  }
  size_t pulls_under_way() const { return pulled_.size(); }

  // Ends all sessions for their clients, who make new ones.
  void BreakSessions();
  // The same for both sides, and nothing that was sent is served any more.
  void Break(std::string_view why);

  // Called with the session's id after the last event of a channel.
  void set_on_gone(std::function<void(uint64_t)> on_gone) { on_gone_ = std::move(on_gone); }

 private:
  struct Channel {
    std::shared_ptr<SimulatedLink> link;
    bool announced = false;
  };

  uint64_t next_channel_ = 1;
  std::map<ChannelId, Channel> channels_;
  std::vector<ServerEvent> pulled_;
  bool pulls_held_ = false;
  bool closes_held_ = false;
  std::vector<std::shared_ptr<SimulatedLink>> told_;  // what the events of the last Poll point to
  void FinishPulls(ChannelId channel, SimulatedLink& link);

  std::function<void(uint64_t)> on_gone_ = [](uint64_t) {};
};

// The client's end. `turn` lets everybody else do something; false: nobody had anything to do.
class SimulatedChannel : public ClientChannel {
 public:
  SimulatedChannel(std::shared_ptr<SimulatedLink> link, bool mapped, std::function<bool()> turn);
  ~SimulatedChannel() override;

  absl::Status status() override { return link_->client_status; }
  absl::StatusOr<TransferBuffer> Allocate(size_t bytes) override;
  absl::StatusOr<TransferBuffer> Register(std::shared_ptr<SharedPages> pages) override;
  void Free(const TransferBuffer& buffer) override;
  size_t reads_max() const override { return kReadsMax; }
  absl::Status PostReads(std::span<const ReadOp> ops) override;
  size_t PollReads(std::span<ReadCompletion> completions) override;
  void GiveUpRead(uint64_t) override {}  // none takes longer than until it is polled
  absl::Status Send(const FrameParts& frame) override;
  std::span<const std::byte> PollReply() override;
  absl::Status Wait(int64_t deadline_ns) override;
  bool PrepareToSleep() override { return false; }
  void FinishSleep() override {}
  std::vector<int> event_fds() const override { return {}; }

 private:
  static constexpr size_t kReadsMax = 16;

  std::shared_ptr<SimulatedLink> link_;
  std::function<bool()> turn_;
  std::map<uint32_t, std::shared_ptr<SharedPages>> pages_;
  uint32_t next_key_ = 1;
};

}  // namespace kvd::test
