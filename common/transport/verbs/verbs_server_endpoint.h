// The end of all RDMA connections of one poller: one completion queue, one shared receive queue.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "common/transport/server_endpoint.h"
#include "common/transport/verbs/completion_queue.h"
#include "common/transport/verbs/limits.h"
#include "common/transport/verbs/receive_pool.h"
#include "common/transport/verbs/registered_slots.h"
#include "common/transport/verbs/server_device.h"
#include "common/transport/verbs/verbs_counters.h"
#include "common/transport/verbs/verbs_server_channel.h"

namespace kvd::verbs {

// Whoever makes and destroys connections, as endpoints see it. Thread-safe; no call blocks.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  // The first message of a connection, or the answer to a challenge.
  virtual void HelloArrived(ChannelId channel, std::span<const std::byte> hello) = 0;
  // The endpoint holds nothing of this connection any more, and its queue pair is in error.
  virtual void Retired(ChannelId channel) = 0;
  // An endpoint has let go of its device, as asked by ReleaseDevice.
  virtual void DeviceReleased() = 0;
};

class VerbsServerEndpoint final : public ServerEndpoint {
 public:
  static constexpr size_t kBatchMax = 32;
  static constexpr int64_t kTickNs = 1'000'000'000;  // between looks at silent connections
  // A peer that cannot be reached any more is noticed within this: a connection that was silent for
  // a whole tick is asked at the end of it, and then the device gives up.
  static constexpr int64_t kDeadPathNs = 2 * kTickNs + kDeviceGivesUpNs;
  static_assert(kDeadPathNs <= 4'000'000'000, "docs/operating.md says four seconds");

  struct Options {
    std::shared_ptr<const ServerDevice> device;
    Limits limits;
    uint32_t frame_bytes = 0;
    ConnectionOwner* owner = nullptr;  // outlives the endpoint's last Poll
    Counters* counters = nullptr;
  };

  struct Admitted {
    Welcome welcome{};
    Hello hello{};
    PeerIdentity peer;
    AdmittedSession session;
  };

  static absl::StatusOr<std::unique_ptr<VerbsServerEndpoint>> Create(const Options& options);
  ~VerbsServerEndpoint() override;

  // --- The owner's part; any thread ---

  const std::shared_ptr<CompletionQueue>& cq() const { return cq_; }
  ibv_srq* srq() const { return receives_->srq(); }
  size_t load() const { return load_.load(std::memory_order_relaxed); }

  // Makes room for a connection with such a queue; ResourceExhausted says what there is too little
  // of. Either Adopt or GiveUp follows.
  absl::Status Reserve(uint32_t queue_credits);
  void GiveUp(uint32_t queue_credits);
  void Adopt(std::unique_ptr<VerbsServerChannel> channel);

  // Posts receives for a session's credits; before Admit. ResourceExhausted.
  absl::Status GrantCredits(uint32_t credits) { return receives_->Grant(credits); }
  void ReleaseCredits(uint32_t credits) { receives_->Release(credits); }
  // Asks for the answer to a challenge, which arrives as another hello.
  void Ask(ChannelId channel, const Challenge& challenge);
  void Admit(ChannelId channel, Admitted admitted);
  void Refuse(ChannelId channel, const Welcome& refusal, const absl::Status& cause);
  // The connection has ended, or is to end, because of `cause`. `tell`: the peer may still listen.
  void End(ChannelId channel, const absl::Status& cause, bool tell);
  // Lets go of the device once the last channel has gone; the owner ends those, and makes no more.
  void ReleaseDevice();

  // --- The poller's part ---

  size_t Poll(std::span<ServerEvent> events) override;
  void Reply(ChannelId channel, const FrameParts& frame) override;
  void Flush() override;
  absl::Status Pull(ChannelId channel, const PullSource& source, std::byte* into,
                    uint64_t pull_id) override;
  void Close(ChannelId channel, const absl::Status& reason) override;
  bool PrepareToSleep() override;
  int event_fd() const override { return epoll_.get(); }

 private:
  using Channel = VerbsServerChannel;
  class Batch;  // the events of one Poll

  struct Command {
    enum class Kind : uint8_t { kAsk, kAdmit, kRefuse, kEnd, kReleaseDevice } kind{};
    ChannelId channel{};
    bool tell = false;
    absl::Status cause;
    Challenge challenge{};
    Admitted admitted;
  };

  struct DonePull {
    ChannelId channel{};
    uint64_t id = 0;
  };

  explicit VerbsServerEndpoint(const Options& options);
  absl::Status Init();

  Channel* Find(ChannelId id);
  Channel* FindByQueuePair(uint32_t number);
  void Send(Command command);
  void Wake();
  uint32_t CqEntriesOf(uint32_t queue_credits) const;

  void TakeNewConnections();
  void TakeCommands(Batch& batch);
  void DoAsk(Channel& channel, const Challenge& challenge);
  void DoAdmit(Channel& channel, Admitted admitted, Batch& batch);
  void EmitPulls(Batch& batch);
  void EmitClosed(Batch& batch);

  void TakeCompletions(Batch& batch);
  void Received(const ibv_wc& completion, Batch& batch);
  void TakeMessage(Channel& channel, uint32_t slot, uint32_t bytes, Batch& batch);
  void Sent(const ibv_wc& completion);
  void SendDone(Channel& channel, uint64_t cookie, bool ok);
  void PumpPulls(Channel& channel);

  // ResourceExhausted: nothing was queued.
  absl::Status QueueMessage(Channel& channel, uint8_t kind, const FrameParts& body);
  void PostAll(Channel& channel);
  void BeginClose(Channel& channel, const absl::Status& cause, bool tell);
  void BeginDrain(Channel& channel);
  void FinishDrain(Channel& channel);

  void Tick(int64_t now_ns);
  void Disarm();
  void LetGoOfDevice();

  Options options_;
  Counters& counters_;
  std::shared_ptr<CompletionQueue> cq_;  // null, as what follows: the device has gone
  std::unique_ptr<ReceivePool> receives_;
  RegisteredSlots send_slots_;
  UniqueFd epoll_;
  UniqueFd inbox_event_;
  UniqueFd timer_;

  std::mutex inbox_mutex_;
  std::vector<std::unique_ptr<Channel>> new_connections_;  // guarded by inbox_mutex_
  std::deque<Command> commands_;                           // guarded by inbox_mutex_
  std::atomic<size_t> inbox_count_{0};                     // a hint that spares the lock
  std::atomic<size_t> load_{0};
  std::atomic<uint32_t> cq_reserved_{0};

  std::unordered_map<ChannelId, std::unique_ptr<Channel>> channels_;
  std::unordered_map<uint32_t, Channel*> by_qp_;
  std::vector<Channel*> unflushed_;
  std::vector<ChannelId> closing_;  // kNotifying or kDraining
  std::deque<DonePull> done_pulls_;
  std::vector<ChannelId> gone_;            // kClosed is still to be told
  std::vector<absl::Status> told_causes_;  // of the batch that the caller looks at
  std::vector<uint32_t> lent_;             // receives that the caller looks at
  std::array<ibv_wc, kBatchMax> ready_;    // completions taken while arming
  size_t ready_count_ = 0;
  uint64_t polls_ = 0;
  int64_t tick_at_ns_ = 0;
  int64_t timer_due_ns_ = 0;  // 0: not set
  bool armed_ = false;
  bool releasing_ = false;  // the device, as soon as no channel is left
};

}  // namespace kvd::verbs
