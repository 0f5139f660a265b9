// The end of all shared-memory sessions of one poller.
//
// What polling costs: one load of a cache line for each channel that is polled, and one epoll_wait
// each millisecond. A channel that has been silent for some milliseconds is not polled any more
// while there are more than kPolledFree of them: its client rings the socket when it sends again.
// So any number of idle channels costs nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "common/transport/server_endpoint.h"
#include "common/transport/shm/shm_server_channel.h"

namespace kvd {

class ShmServerEndpoint final : public ServerEndpoint {
 public:
  static constexpr size_t kBatchMax = 32;
  static constexpr size_t kRequestsPerTurn = 8;  // of one channel, before the others have theirs
  static constexpr size_t kPolledFree = 32;      // channels that are polled however idle they are
  static constexpr uint64_t kPullBytesPerPoll = uint64_t{1} << 20;
  static constexpr uint64_t kPullBytesAtOnce = uint64_t{64} << 10;

  // ResourceExhausted: no descriptors.
  static absl::StatusOr<std::unique_ptr<ShmServerEndpoint>> Create();

  // Gives the endpoint a new session. Any thread. load() is how many it has been given that still
  // live.
  void Adopt(AcceptedSession accepted);
  size_t load() const { return load_.load(std::memory_order_relaxed); }

  size_t Poll(std::span<ServerEvent> events) override;
  void Reply(ChannelId channel, const FrameParts& frame) override;
  void Flush() override;
  absl::Status Pull(ChannelId channel, const PullSource& source, std::byte* into,
                    uint64_t pull_id) override;
  void Close(ChannelId channel, const absl::Status& reason) override;
  bool PrepareToSleep() override;
  int event_fd() const override { return epoll_.get(); }

 private:
  // The events of one Poll.
  class Batch;

  struct PullJob {
    ChannelId channel;
    uint64_t pull_id;
    PullSpan span;
    bool failed = false;
  };

  struct Ended {
    ChannelId channel;
    absl::Status cause;
  };

  ShmServerEndpoint(UniqueFd epoll, UniqueFd incoming_event);

  ShmServerChannel* Find(ChannelId id);
  void StartPolling(ShmServerChannel& channel);
  void StopPolling(ShmServerChannel& channel);
  void BeginClose(ShmServerChannel& channel, const absl::Status& cause);

  void TakeIncoming(Batch& batch);
  void Open(AcceptedSession accepted, Batch& batch);
  void EmitClosed(Batch& batch);
  void AdvancePulls(Batch& batch);
  void TakeRequests(Batch& batch);
  bool TakeTurn(ShmServerChannel& channel, Batch& batch);

  bool SocketsAreDue();
  void CheckSockets();
  // May end the channel: look at `closing` before it is used again.
  void ReadSocket(ShmServerChannel& channel, uint32_t wanted_segment = 0);
  void ParkIdleChannels();
  void DisarmAll();

  UniqueFd epoll_;
  UniqueFd incoming_event_;
  std::mutex incoming_mutex_;
  std::vector<AcceptedSession> incoming_;  // guarded by incoming_mutex_
  std::atomic<size_t> incoming_count_{0};  // a hint that spares the lock
  std::atomic<size_t> load_{0};

  std::unordered_map<ChannelId, std::unique_ptr<ShmServerChannel>> channels_;
  std::vector<ShmServerChannel*> polled_;
  size_t turn_ = 0;  // in polled_, who comes first
  std::vector<ShmServerChannel*> unflushed_;
  std::vector<Ended> ending_;  // kClosed is still to be told
  std::vector<Ended> ended_;   // told in the batch that the caller looks at
  std::deque<PullJob> pulls_;
  std::vector<std::byte> frames_;  // requests of the batch that the caller looks at
  uint64_t next_id_ = 1;
  uint64_t polls_ = 0;
  uint64_t tick_ = 0;
  int64_t sockets_checked_ns_ = 0;
  bool armed_ = false;
};

}  // namespace kvd
