#include "server/poller/poller.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/cpu_relax.h"
#include "common/base/errno_status.h"

namespace kvd {
namespace {

constexpr uint32_t kIdleRoundsPerClock = 16;
constexpr size_t kSpareForwardsMax = 256;
constexpr int64_t kSweepNs = 10'000'000'000;
constexpr size_t kSweepClientsMin = 64;
// Looks at a session within the time after which it is idle.
constexpr int64_t kIdleLooks = 4;
// The longest sleep while items expire: their clock may go a little faster than the poller's.
constexpr int64_t kSleepMaxUs = 10'000'000;
// While somebody is connected, a sleep is of naps, by which it is noticed that it did not end in
// time.
constexpr int kNapMs = 100;

}  // namespace

absl::StatusOr<std::unique_ptr<Poller>> Poller::Create(const PollerOptions& options, uint32_t index,
                                                       ServerEndpoint& endpoint, Shard& shard,
                                                       const Clock& clock,
                                                       const std::vector<Poller*>& peers) {
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus("eventfd");
  return std::unique_ptr<Poller>(
      new Poller(options, index, endpoint, shard, clock, peers, std::move(wake)));
}

Poller::Poller(const PollerOptions& options, uint32_t index, ServerEndpoint& endpoint, Shard& shard,
               const Clock& clock, const std::vector<Poller*>& peers, UniqueFd wake)
    : options_(options),
      index_(index),
      hash_seed_(options.geometry.hash_seed()),
      endpoint_(endpoint),
      shard_(shard),
      clock_(clock),
      peers_(peers),
      operations_(shard, options.limits, options.replies_kept_max),
      stall_meter_(options.processor_ns),
      wake_(std::move(wake)) {
  spare_forwards_.reserve(kSpareForwardsMax);
}

Poller::~Poller() {
  RequestStop();
  Join();
}

void Poller::Start() {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), absl::StrCat("kvd-poller-", index_).c_str());
}

absl::Status Poller::RunOn(const std::vector<int>& cpus) {
  if (cpus.empty()) return absl::InvalidArgumentError("no processors");
  const int count = *std::max_element(cpus.begin(), cpus.end()) + 1;
  cpu_set_t* const set = CPU_ALLOC(count);
  const size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, set);
  const int error_number = pthread_setaffinity_np(thread_.native_handle(), bytes, set);
  CPU_FREE(set);
  return error_number == 0 ? absl::OkStatus() : ErrnoStatus(error_number, "sched_setaffinity");
}

void Poller::RequestStop() {
  // One that never started has nothing to give back, and its peers do not wait for it.
  if (!thread_.joinable()) drained_.store(true, std::memory_order_release);
  stop_.store(true, std::memory_order_seq_cst);
  Wake();
}

void Poller::EndSessions(const std::vector<uint64_t>& session_ids, const absl::Status& reason) {
  {
    const std::lock_guard lock(orders_mutex_);
    orders_.push_back({session_ids, reason});
    orders_wait_.store(true, std::memory_order_seq_cst);
  }
  Wake();
}

void Poller::TakeOrders() {
  std::vector<Order> orders;
  {
    const std::lock_guard lock(orders_mutex_);
    orders.swap(orders_);
    orders_wait_.store(false, std::memory_order_relaxed);
  }
  for (const Order& order : orders) {
    sessions_.ForEach([&](ChannelId channel, ServerSession& session) {
      const auto& ids = order.session_ids;
      if (session.ending || std::find(ids.begin(), ids.end(), session.session_id) == ids.end())
        return;
      session.ending = true;
      endpoint_.Close(channel, order.reason);
    });
  }
}

void Poller::Join() {
  if (thread_.joinable()) thread_.join();
}

void Poller::Run() {
  thread_id_.store(gettid(), std::memory_order_relaxed);
  LookAtClock();
  while (!stop_.load(std::memory_order_relaxed)) {
    if (Step()) {
      idle_since_ns_ = 0;
      idle_rounds_ = 0;
    } else {
      Idle();
    }
  }
  Drain();
}

bool Poller::Turn() {
  if (Step()) return true;
  LookAtClock();
  Housekeeping();
  return shard_has_work_;
}

// kvd has no memory left besides the region: whoever cannot be served is told, the others are
// served.
void Poller::Unserved(ChannelId channel) {
  if (ServerSession* session = sessions_.Find(channel)) session->ending = true;
  endpoint_.Close(channel, absl::ResourceExhaustedError("kvd is out of memory"));
}

inline void Poller::BeginStep() {
  taken_ns_ = step_ended_ns_ != 0 ? step_ended_ns_ : clock_.NowMonotonicNs();
}

// The replies are posted: that ends all that was answered (poller_times.cc).
inline void Poller::EndStep() {
  step_ended_ns_ = clock_.NowMonotonicNs();
  const int64_t batch_ns = step_ended_ns_ - taken_ns_;
  const Decoded* const end = batch_.data() + batched_;
  for (const Decoded* decoded = batch_.data(); decoded != end; ++decoded) {
    if (decoded->answered) times_.Add(decoded->request.header.opcode, batch_ns);
  }
  if (batch_ns >= options_.slow_ns || (finished_count_ | own_times_count_) != 0 ||
      stall_meter_.IsDue(step_ended_ns_)) [[unlikely]]
    NoteLate(batch_ns);
  batched_ = 0;
}

bool Poller::Step() {
  if (orders_wait_.load(std::memory_order_relaxed)) [[unlikely]]
    TakeOrders();
  const size_t count = endpoint_.Poll(events_);
  if (count != 0) BeginStep();
  for (const ServerEvent& event : std::span(events_).first(count)) {
    Guard(event.channel, [&] { Handle(event); });
  }
  if (batched_ != 0) ExecuteBatch();
  const bool has_mail = !mailbox_.empty();
  if (count == 0 && has_mail) BeginStep();
  const size_t mail = has_mail ? TakeMail() : 0;
  if (count + mail != 0) {
    endpoint_.Flush();
    EndStep();
    shard_has_work_ = true;
  } else {
    step_ended_ns_ = 0;
  }
  // After the replies, so that nobody waits for it.
  if (shard_has_work_) shard_has_work_ = shard_.Work();
  return count + mail != 0 || shard_has_work_;
}

void Poller::Idle() {
  if (options_.mode == PollMode::kEvent) {
    LookAtClock();
    Housekeeping();
    if (!shard_has_work_) Sleep();
    return;
  }
  if (++idle_rounds_ % kIdleRoundsPerClock != 0) return CpuRelax();
  OfferCore();
  LookAtClock();
  Housekeeping();
  if (options_.mode == PollMode::kBusy || shard_has_work_) return;
  if (idle_since_ns_ == 0) {
    idle_since_ns_ = now_ns_;
  } else if (now_ns_ - idle_since_ns_ >= options_.spin_ns) {
    Sleep();
    idle_since_ns_ = 0;
  }
}

// Whoever posts, or asks to stop, first stores that (seq_cst) and then looks at sleeping_ (Wake);
// the store here and the looks that follow are the other half, so no wake-up is lost.
void Poller::Sleep() {
  sleeping_.store(true, std::memory_order_seq_cst);
  if (mailbox_.empty() && !stop_.load(std::memory_order_seq_cst) &&
      !orders_wait_.load(std::memory_order_seq_cst) && endpoint_.PrepareToSleep()) {
    counters_.sleeps.Add(1);
    Nap();
  }
  sleeping_.store(false, std::memory_order_relaxed);
}

// Until it is woken, or has slept for as long as it may.
void Poller::Nap() {
  pollfd wakers[] = {{endpoint_.event_fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  int left_ms = SleepMaxMs();
  for (int ready = 0; ready == 0 && left_ms != 0;) {
    int nap_ms = left_ms;
    if (sessions_.size() != 0 && (nap_ms < 0 || nap_ms > kNapMs)) nap_ms = kNapMs;
    ready = poll(wakers, 2, nap_ms);
    const int64_t began_ns = std::exchange(now_ns_, clock_.NowMonotonicNs());
    const int64_t ends_ns = nap_ms < 0 ? INT64_MAX : began_ns + nap_ms * int64_t{1'000'000};
    NoteStall(stall_meter_.Slept(began_ns, now_ns_, ends_ns));
    if (left_ms > 0) left_ms -= nap_ms;
  }
  if ((wakers[1].revents & POLLIN) != 0) {
    uint64_t ignored;
    [[maybe_unused]] const ssize_t got = read(wake_.get(), &ignored, sizeof(ignored));
  }
}

void Poller::LookAtClock() {
  now_ns_ = clock_.NowMonotonicNs();
  if (stall_meter_.IsDue(now_ns_)) NoteStall(stall_meter_.Look(now_ns_));
}

// Until there is something to do that nobody will ring for; -1: for ever.
int Poller::SleepMaxMs() const {
  int64_t sleep_us = INT64_MAX;
  if (const auto lease_ends_ns = sessions_.next_lease_end_ns(); lease_ends_ns.has_value()) {
    sleep_us = (*lease_ends_ns - now_ns_) / 1000;
  }
  if (const auto sweep_us = shard_.next_sweep_unix_us(); sweep_us.has_value()) {
    const uint64_t now_us = shard_.now_unix_us();
    const uint64_t until_us = *sweep_us > now_us ? *sweep_us - now_us : 0;
    sleep_us = std::min(sleep_us, static_cast<int64_t>(std::min<uint64_t>(until_us, kSleepMaxUs)));
  }
  if (options_.idle_ns != 0 && sessions_.size() != 0)
    sleep_us = std::min(sleep_us, (next_idle_look_ns_ - now_ns_) / 1000);
  if (sleep_us == INT64_MAX) return -1;
  return static_cast<int>(std::max<int64_t>(sleep_us, 0) / 1000 + 1);
}

void Poller::Wake() {
  if (!sleeping_.load(std::memory_order_seq_cst)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
}

void Poller::Housekeeping() {
  ReleaseExpired();
  if (options_.idle_ns != 0 && now_ns_ >= next_idle_look_ns_) EndIdle();
  if (now_ns_ >= next_sweep_ns_) ForgetClients();
  if (const auto sweep_us = shard_.next_sweep_unix_us(); sweep_us.has_value()) {
    shard_.RefreshClock();
    if (shard_.now_unix_us() >= *sweep_us) shard_has_work_ = true;
  }
}

void Poller::EndIdle() {
  next_idle_look_ns_ = now_ns_ + options_.idle_ns / kIdleLooks;
  sessions_.ForEach([this](ChannelId channel, ServerSession& session) {
    const uint64_t requests = session.counters.requests.get();
    const bool silent = requests == session.requests_looked_at && session.pull_bytes == 0;
    session.requests_looked_at = requests;
    session.looks_in_vain = silent ? session.looks_in_vain + 1 : 0;
    if (session.ending || session.looks_in_vain < kIdleLooks) return;
    session.ending = true;
    endpoint_.Close(channel, absl::UnavailableError(absl::StrCat("it sent nothing for ",
                                                                 options_.idle_ns / 1'000'000'000,
                                                                 " s (--idle_timeout)")));
  });
}

// Replies of clients that will not come back.
void Poller::ForgetClients() {
  operations_.replies().Sweep(options_.client_known);
  next_sweep_ns_ = now_ns_ + kSweepNs;
  sweep_at_clients_ = 2 * operations_.replies().clients() + kSweepClientsMin;
}

void Poller::ReleaseExpired() {
  const auto lease_ends_ns = sessions_.next_lease_end_ns();
  if (!lease_ends_ns.has_value() || *lease_ends_ns > now_ns_) return;
  for (const HeldItem& held : sessions_.TakeExpired(now_ns_)) Release(held);
}

bool Poller::NothingUnderWay() const { return pulls_.empty() && forwards_out_ == 0; }

// Answers what has come, then ends all sessions, then serves its peers until they have done the
// same.
void Poller::Drain() {
  const int64_t deadline_ns = clock_.NowMonotonicNs() + options_.drain_ns;
  const auto in_time = [&] { return clock_.NowMonotonicNs() < deadline_ns; };
  while ((Step() || !NothingUnderWay()) && in_time()) continue;
  const absl::Status reason = absl::UnavailableError("kvd is shutting down");
  while (sessions_.size() > 0 || !NothingUnderWay()) {
    sessions_.ForEach([&](ChannelId channel, ServerSession&) { endpoint_.Close(channel, reason); });
    Step();
    // What a peer has not given back by now will not come: that peer has given up as well.
    if (sessions_.size() == 0 && !in_time()) break;
  }
  drained_.store(true, std::memory_order_release);
  const auto drained = [](const Poller* peer) {
    return peer->drained_.load(std::memory_order_acquire);
  };
  while (!std::all_of(peers_.begin(), peers_.end(), drained)) {
    Step();
    OfferCore();
  }
}

}  // namespace kvd
