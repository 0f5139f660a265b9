// One thread of the server: polls its endpoint, owns one shard, answers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/unique_fd.h"
#include "common/protocol/geometry.h"
#include "common/transport/server_endpoint.h"
#include "server/operations/once_operations.h"
#include "server/operations/operations.h"
#include "server/operations/request_times.h"
#include "server/operations/statistics.h"
#include "server/poller/forward.h"
#include "server/poller/mailbox.h"
#include "server/poller/request_timing.h"
#include "server/poller/slow_log.h"
#include "server/poller/stall_meter.h"
#include "server/poller/write_order.h"
#include "server/session/session_table.h"
#include "server/store/shard.h"

namespace kvd {

enum class PollMode {
  kAdaptive,  // spins for a while after the last work, then sleeps
  kBusy,      // never sleeps
  kEvent,     // sleeps as soon as there is nothing to do
};

struct PollerOptions {
  PollMode mode = PollMode::kAdaptive;
  int64_t spin_ns = 50'000;          // adaptive only
  int64_t drain_ns = 2'000'000'000;  // after RequestStop, for what is under way
  OperationLimits limits;
  Geometry geometry;
  uint64_t pull_bytes_max = 0;     // of one session, on their way at once; 0: no limit
  int64_t idle_ns = 0;             // a session that sent nothing for so long ends; 0: never
  uint32_t replies_kept_max = 64;  // per client: at least the credits of a session
  // Whether a client may come back and repeat what it sent; called on any poller's thread.
  std::function<bool(uint64_t client_id)> client_known = [](uint64_t) { return true; };
  // The statistics text; called on any poller's thread.
  std::function<std::string()> statistics = [] { return std::string(); };
  // Not ok: the session that begins is to end at once; called on any poller's thread.
  std::function<absl::Status(uint64_t session_id)> why_expelled = [](uint64_t) {
    return absl::OkStatus();
  };
  // A line for each session, and the end of those that an administrator means (but not of the one
  // that asks), of which it returns how many, or why it is not plain whom; called on any poller's
  // thread.
  std::function<std::string()> sessions_text = [] { return std::string(); };
  std::function<absl::StatusOr<uint64_t>(std::string_view who, uint64_t asking_session_id)> kick =
      [](std::string_view, uint64_t) { return uint64_t{0}; };
  // Where it is counted what the session that begins does; called on any poller's thread.
  std::function<void(uint64_t session_id, std::shared_ptr<const SessionCounters> counters)>
      session_begins = [](uint64_t, std::shared_ptr<const SessionCounters>) {};
  // A line for each slow request, the newest first; likewise.
  std::function<std::string()> slow_text = [] { return std::string(); };
  // Requests that took `slow_ns` or longer; called on any poller's thread. Throws bad_alloc.
  int64_t slow_ns = INT64_MAX;
  std::function<void(SlowRequest)> slow = [](SlowRequest) {};
  // The processor time of the calling thread: whether a poller was given its processor.
  std::function<int64_t()> processor_ns = ThreadProcessorNs;
  // One line about a session, for the log; called on any poller's thread.
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

// A request of another poller's shard is forwarded to it and answered when it comes back, so a
// channel's replies may come in another order than its requests. Its writes to one key take effect
// in the order of the requests.
class Poller {
 public:
  // ResourceExhausted: no descriptors. The endpoint, the shard and the clock outlive the poller.
  // `peers`, in the order of their shards, includes the poller itself and is complete before Start.
  static absl::StatusOr<std::unique_ptr<Poller>> Create(const PollerOptions& options,
                                                        uint32_t index, ServerEndpoint& endpoint,
                                                        Shard& shard, const Clock& clock,
                                                        const std::vector<Poller*>& peers);
  // Stops the thread if it runs. All pollers are stopped before the first of them goes.
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Throws std::system_error if there is no thread to be had; what was started is stopped as ever.
  void Start();

  // Once it has been started: has the thread run on these processors alone. An error of errno's.
  absl::Status RunOn(const std::vector<int>& cpus);

  // One turn of the loop, for a caller that is this poller's thread instead of Start's: takes what
  // is there, without ever sleeping. False: there was nothing to do.
  bool Turn();

  // Any thread. The poller answers what is there, closes its sessions ("kvd is shutting down") and
  // ends, within drain_ns and a little.
  void RequestStop();
  void Join();

  // Any thread. Ends those of these sessions that are this poller's; they are told why. At once:
  // the poller executes nothing of them any more when it has seen this. One that has not begun here
  // yet is left to PollerOptions::why_expelled.
  void EndSessions(const std::vector<uint64_t>& session_ids, const absl::Status& reason);

  const RequestCounters& counters() const { return counters_; }
  const RequestTimes& times() const { return times_; }
  // As the kernel calls the thread (gettid); 0: it does not run yet.
  int thread_id() const { return thread_id_.load(std::memory_order_relaxed); }
  Shard& shard() { return shard_; }

 private:
  // A pull under way, of this poller's own shard (forward null) or another's.
  struct PendingPull {
    ChannelId channel{};
    RequestOrigin origin;
    RequestHeader request{};
    Reservation reservation;
    Forward* forward = nullptr;
    RequestTiming timing;  // forward null only; otherwise that has it
    int64_t began_ns = 0;
  };

  // A request of the batch at hand. Nothing in it is set before Decode does: most of it would be
  // written twice.
  struct Decoded {
    ChannelId channel;
    ServerSession* session;  // from Execute on
    RequestView request;
    FrameError error;
    uint64_t hash;
    uint32_t owner;
    bool answered;  // in this step

    RequestOrigin origin() const { return {session->client_id, session->session_id}; }
  };

  // A request that was answered in a later step than that in which it came.
  struct Finished {
    ChannelId channel{};
    uint8_t opcode = 0;
    uint16_t key_bytes = 0;
    uint64_t value_bytes = 0;
    RequestTiming timing;
  };

  // What becomes one line of the slow log.
  struct SlowEntry {
    Finished finished;
    RequestPhases phases;
    uint32_t requests = 0;  // 0: there is none
  };

  // From its creation until Stop, this poller works for the request.
  class Stopwatch {
   public:
    Stopwatch(Poller& poller, RequestTiming& timing)
        : Stopwatch(poller, timing, poller.clock_.NowMonotonicNs()) {}
    Stopwatch(Poller& poller, RequestTiming& timing, int64_t begun_ns)
        : poller_(poller),
          timing_(timing),
          begun_ns_(begun_ns),
          evicting_ns_(poller.shard_.evicting_ns()) {}
    int64_t Stop();  // what the clock says

   private:
    const Poller& poller_;
    RequestTiming& timing_;
    const int64_t begun_ns_;
    const int64_t evicting_ns_;
  };

  Poller(const PollerOptions& options, uint32_t index, ServerEndpoint& endpoint, Shard& shard,
         const Clock& clock, const std::vector<Poller*>& peers, UniqueFd wake);

  // The loop (poller.cc).
  void Run();
  bool Step();
  void Unserved(ChannelId channel);
  // Does what an event or a message of `channel` asks, or ends the channel for want of memory.
  template <typename Action>
  void Guard(ChannelId channel, Action action) {
    try {
      action();
    } catch (const std::bad_alloc&) {
      Unserved(channel);
    }
  }
  void Idle();
  void Sleep();
  void Nap();
  int SleepMaxMs() const;
  void LookAtClock();
  void Housekeeping();
  void ReleaseExpired();
  void EndIdle();
  void ForgetClients();
  void Wake();
  void Drain();
  bool NothingUnderWay() const;

  // Events (poller_requests.cc).
  void Handle(const ServerEvent& event);
  void OnOpened(const ServerEvent& event);
  void Decode(const ServerEvent& event);
  void ExecuteBatch();
  void Prefetch(std::span<const Decoded> batch) const;
  uint32_t OwnerOf(const Decoded& decoded) const;
  void Execute(Decoded& decoded);
  bool MustWait(const Decoded& decoded) const;
  void NextWrite(ChannelId channel, uint64_t hash);
  void ExecuteHere(Decoded& decoded);
  bool ExecutePulled(const Decoded& decoded, const RequestTiming& timing);
  void StartPull(ChannelId channel, PendingPull pull);
  void OnPullDone(const ServerEvent& event);
  void OnClosed(const ServerEvent& event);
  void Answer(ChannelId channel, ServerSession* session, const Outcome& outcome, uint32_t shard);
  void AnswerText(const Decoded& decoded, const std::function<std::string()>& text);
  bool MayPull(const ServerSession& session, uint64_t bytes) const;
  void AnswerSessions(const Decoded& decoded);
  void AnswerKick(const Decoded& decoded);
  void TakeOrders();
  uint64_t NowUnixUs() const;
  void EndSession(ChannelId channel, const Outcome& last);
  void RefuseFrame(const Decoded& decoded);
  void FinishPull(PendingPull& pull, bool pulled);

  // Times (poller_times.cc).
  static bool MayTakeLong(const RequestView& request);
  void BeginStep();
  void EndStep();
  void NoteLate(int64_t batch_ns);
  int64_t NoteStall(int64_t stalled_ns);
  void Finish(ChannelId channel, const RequestHeader& request, const RequestTiming& timing);
  void NoteFinished(const Finished& finished, int64_t now_ns);
  void NoteOwnTime(const Decoded& decoded, int64_t evicting_ns);
  void NoteSlowBatch(std::span<const Decoded> batch, int64_t stalled_ns);
  void NoteSlow(const Finished& finished, const RequestPhases& phases, bool to_blame);
  void WriteSlow();
  void WriteSlow(const SlowEntry& entry);

  // Other pollers (poller_forward.cc).
  size_t TakeMail();
  void Post(Forward* forward);
  void SendForward(const Decoded& decoded);
  Forward* ForwardOf(const Decoded& decoded);
  void Serve(Forward& forward);
  void OnReturn(Forward* forward);
  void Release(const HeldItem& held);
  void ExecuteHits(const Decoded& decoded);
  void PassOn(std::string_view hashes);
  void SendHits(std::string_view hashes, uint32_t owner);
  void NoteHits(std::string_view hashes);
  Forward* NewForward();
  void Recycle(Forward* forward);

  const PollerOptions options_;
  const uint32_t index_;
  const uint64_t hash_seed_;
  ServerEndpoint& endpoint_;
  Shard& shard_;
  const Clock& clock_;
  const std::vector<Poller*>& peers_;
  OnceOperations operations_;
  SessionTable sessions_;
  int64_t next_sweep_ns_ = 0;  // of replies kept for clients; also when there are this many:
  size_t sweep_at_clients_ = 64;
  int64_t next_idle_look_ns_ = 0;
  RequestCounters counters_;
  RequestTimes times_;
  StallMeter stall_meter_;
  std::atomic<int> thread_id_{0};

  static constexpr size_t kBatchMax = 32;
  std::array<ServerEvent, kBatchMax> events_;
  std::array<Decoded, kBatchMax> batch_;
  size_t batched_ = 0;
  int64_t taken_ns_ = 0;       // when this step's requests, or its mail, were taken
  int64_t step_ended_ns_ = 0;  // of the step before; 0: that had nothing to do
  // Of requests of the batch at hand that may have taken long, by their place in it.
  struct OwnTime {
    size_t place = 0;
    int64_t evicting_ns = 0;
    int64_t executing_ns = 0;
  };
  std::array<OwnTime, kBatchMax> own_times_;
  size_t own_times_count_ = 0;
  int64_t looked_ns_ = 0;  // at the clock, since the first of own_times_
  // Of this step's slow requests the longest so far: of those that had the time to themselves, and
  // of those that only waited.
  SlowEntry culprit_;
  SlowEntry victims_;
  std::array<Finished, 32> finished_;
  size_t finished_count_ = 0;
  WriteOrder write_order_;
  std::unordered_map<uint64_t, PendingPull> pulls_;
  uint64_t next_pull_ = 1;
  bool shard_has_work_ = true;

  int64_t idle_since_ns_ = 0;  // 0: not idle
  uint32_t idle_rounds_ = 0;
  int64_t now_ns_ = 0;  // of the last look at the clock

  Mailbox mailbox_;
  std::vector<std::unique_ptr<Forward>> spare_forwards_;
  size_t forwards_out_ = 0;
  std::atomic<bool> sleeping_{false};
  UniqueFd wake_;  // eventfd

  // Sessions to end.
  struct Order {
    std::vector<uint64_t> session_ids;
    absl::Status reason;
  };
  std::mutex orders_mutex_;
  std::vector<Order> orders_;             // guarded by orders_mutex_
  std::atomic<bool> orders_wait_{false};  // a hint that spares the lock

  std::atomic<bool> stop_{false};
  std::atomic<bool> drained_{false};  // no peer will hear of it again, unless it is asked
  std::thread thread_;
};

}  // namespace kvd
