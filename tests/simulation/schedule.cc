#include "tests/simulation/schedule.h"

#include <algorithm>
#include <list>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/internal/client_factory.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "server/slewed_clock.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/recording_client.h"
#include "tests/simulation/fiber.h"
#include "tests/simulation/simulated_kvd.h"
#include "tests/simulation/virtual_time.h"

namespace kvd::test {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kDeadlineNs = 50 * kMs;
// What an operation may take beyond its deadline: its client is not always the one that goes on.
constexpr int64_t kPatienceNs = 20 * kMs;
// How far clients' ideas of kvd's clock may be off, and that clock from the history's: time that
// jumps while they learn it.
constexpr int64_t kExpiryErrorNs = 4 * kDeadlineNs;
constexpr int64_t kClockJumpNs = 86'400'000 * kMs;
constexpr uint64_t kStepsMax = 2'000'000;
constexpr size_t kLinksMax = 64;

class Schedule {
 public:
  explicit Schedule(const ScheduleOptions& options)
      : options_(options),
        random_(options.seed),
        log_(OperationLog::Create(options.operations * 2 + 4096)) {}

  ScheduleResult Run() {
    VirtualTime::Begin(options_.seed, [this](int64_t until_ns) { Sleep(until_ns); });
    Start();
    for (steps_ = 0; !AllDone(); ++steps_) {
      if (steps_ == kStepsMax) {
        // What is stuck cannot be taken down.
        std::fprintf(stderr, "seed %lu: clients do not come to their end\n", options_.seed);
        std::abort();
      }
      if (log_->taken() >= options_.operations) board_.stop.store(true);
      Step();
    }
    clients_.clear();
    kvd_.reset();
    VirtualTime::End();
    return Judge();
  }

 private:
  struct OneClient {
    RecordingPlan plan;
    std::unique_ptr<Fiber> fiber;
    int64_t wake_ns = 0;
  };

  void Start() {
    SimulatedKvd::Options kvd;
    kvd.memory_bytes = uint64_t{6} << 20;
    kvd.pollers = static_cast<uint32_t>(random_.Between(1, 2));
    kvd.on_link = [this](const std::shared_ptr<SimulatedLink>& link) {
      link->delayed = true;
      link->serves_arrived = random_.OneIn(2);
      links_.push_back(link);
    };
    kvd.turn = [this] { return LetOthers(); };
    pollers_ = kvd.pollers;
    kvd_options_ = kvd;
    StartKvd();
    expiry_ = random_.OneIn(2);
    clock_jumps_ = random_.OneIn(2);
    const size_t count = random_.Between(2, 4);
    clients_.resize(count);
    hot_keys_ = random_.OneIn(2) ? 8 : 16;
    board_.keys.store(hot_keys_);
    for (size_t i = 0; i < count; ++i) Prepare(i);
  }

  void Prepare(size_t i) {
    OneClient& client = clients_[i];
    client.plan.options.deadline = std::chrono::nanoseconds(kDeadlineNs);
    client.plan.options.credits = static_cast<uint32_t>(random_.Between(1, 4));
    client.plan.options.location_cache_entries = random_.OneIn(2) ? 256 : 0;
    client.plan.seed = options_.seed;
    client.plan.hot_keys = hot_keys_;
    client.plan.client = static_cast<uint16_t>(i + 1);
    client.plan.cold_one_in = 8;
    client.plan.expiry = expiry_;
    if (random_.OneIn(3)) {
      client.plan.habit = RecordingPlan::Habit::kManyAtOnce;
      clients_many_at_once_.insert(client.plan.client);
    }
    client.fiber = std::make_unique<Fiber>([this, &client] {
      RunRecordingClient(client.plan, board_, *log_,
                         [this, &client] { return Connect(client.plan.options); });
    });
  }

  void StartKvd() {
    kvd_options_.clock = &clocks_.emplace_back(RealClock::Get());
    kvd_ = SimulatedKvd::Create(kvd_options_).value();
  }

  // To the kvd that is there when the session is made.
  absl::StatusOr<std::unique_ptr<Client>> Connect(const ClientOptions& options) {
    return ClientFactory::Connect("rdma:simulated:1", options,
                                  [this](const Target&, const Hello& hello, const ClientOptions&,
                                         int64_t) { return kvd_->Open(hello, /*mapped=*/false); });
  }

  bool AllDone() const {
    return std::all_of(clients_.begin(), clients_.end(),
                       [](const OneClient& client) { return client.fiber->done(); });
  }

  // From within a client that waits.
  bool LetOthers() {
    if (Fiber::Current() != nullptr) {
      Fiber::Yield();
    } else {
      Step();
    }
    return true;
  }

  void Sleep(int64_t until_ns) {
    while (VirtualTime::now_ns() < until_ns) {
      if (Fiber::Current() == nullptr) {
        VirtualTime::AdvanceTo(until_ns);
        return;
      }
      OneClient& client = *running_;
      client.wake_ns = until_ns;
      Fiber::Yield();
    }
  }

  void Step() {
    VirtualTime::Advance(static_cast<int64_t>(random_.Uniform(20'000)));
    switch (random_.Uniform(8)) {
      case 0:
      case 1:
      case 2:
        GoOn();
        break;
      case 3:
      case 4:
        kvd_->poller(random_.Uniform(pollers_)).Turn();
        break;
      default:
        Network();
    }
    if (options_.faults && random_.OneIn(300)) Fault();
  }

  void GoOn() {
    OneClient& client = clients_[random_.Uniform(clients_.size())];
    if (client.fiber->done() || VirtualTime::now_ns() < client.wake_ns) return;
    running_ = &client;
    client.fiber->Resume();
    running_ = nullptr;
  }

  // Something arrives, or gets nearer.
  void Network() {
    if (links_.empty()) return;
    SimulatedLink& link = *links_[random_.Uniform(links_.size())];
    if (link.over()) return;
    const auto some = [&](size_t most) { return most == 0 ? 0 : random_.Uniform(most + 1); };
    switch (random_.Uniform(4)) {
      case 0:
        link.requests_arrived += some(link.requests.size() - link.requests_arrived);
        break;
      case 1:
        link.replies_arrived += some(link.replies.size() - link.replies_arrived);
        break;
      case 2:
        if (!link.pulls.empty()) link.pulls.front().GoOn(Piece(link.pulls.front()));
        break;
      default:
        if (!link.reads.empty()) {
          // Several are under way at once, and none has to wait for those before it.
          SimulatedTransfer& read = link.reads[random_.Uniform(link.reads.size())];
          read.GoOn(Piece(read));
        }
    }
  }

  // All of it, a cache line, or any number of bytes.
  uint64_t Piece(const SimulatedTransfer& transfer) {
    switch (random_.Uniform(4)) {
      case 0:
        return 1 + random_.Uniform(transfer.length);
      case 1:
        return 64;
      default:
        return transfer.length;
    }
  }

  void Fault() {
    // Not both: a kvd whose machine's clock was set back starts with lower versions than the last.
    if (!clock_jumps_ && random_.OneIn(16)) return Restart();
    if (clock_jumps_ && random_.OneIn(8)) {
      const int64_t far = 2 * static_cast<int64_t>(random_.Uniform(kClockJumpNs)) - kClockJumpNs;
      return VirtualTime::JumpUnix(random_.OneIn(2) ? far : far / 100'000);
    }
    if (random_.OneIn(4)) {
      VirtualTime::Advance(static_cast<int64_t>(random_.Uniform(2 * kDeadlineNs)));
      return;
    }
    if (links_.empty()) return;
    SimulatedLink& link = *links_[random_.Uniform(links_.size())];
    if (link.over()) return;
    ++breaks_;
    link.Break("the network has broken");
    if (links_.size() > kLinksMax) {
      std::erase_if(links_, [](const auto& old) { return old->over(); });
    }
  }

  // The next kvd has nothing of the one that died.
  void Restart() {
    ++deaths_;
    const int64_t died_ns = OrderedNowNs();
    kvd_->Die();
    std::erase_if(links_, [](const auto& old) { return old->over(); });
    StartKvd();
    died_ns_.push_back(died_ns);
  }

  // What was there is gone, of each key.
  void AddLosses(std::vector<Operation>& history) const {
    std::set<uint64_t> keys;
    for (const Operation& operation : history) keys.insert(operation.key);
    for (const int64_t died_ns : died_ns_) {
      for (const uint64_t key : keys) {
        Operation loss;
        loss.kind = OperationKind::kLost;
        loss.outcome = Outcome::kOk;
        loss.key = key;
        loss.invoked_ns = died_ns;
        loss.returned_ns = died_ns + 1;
        history.push_back(loss);
      }
    }
  }

  ScheduleResult Judge() {
    ScheduleResult result;
    const std::vector<Operation> history = log_->Collect();
    std::vector<Operation> with_losses = history;
    AddLosses(with_losses);
    CheckOptions check;
    check.rules = {.eviction = false, .expiry_error_ns = kExpiryErrorNs, .readers_differ = true};
    const CheckResult checked = CheckHistory(std::move(with_losses), check);
    result.operations = checked.operations;
    result.unknown = checked.unknown;
    result.breaks = breaks_;
    result.deaths = deaths_;
    for (const Operation& operation : history) result.expiring += operation.expiry_ns != kNever;
    result.torn_reads = board_.torn_reads.load();
    if (board_.broken.load()) result.failure = "a client met what no contract allows";
    for (const std::string& report : checked.reports)
      absl::StrAppend(&result.failure, report, "\n");
    if (!checked.ok() && result.failure.empty()) result.failure = "undecided";
    JudgeTimes(history, result);
    result.ok = result.failure.empty();
    return result;
  }

  void JudgeTimes(const std::vector<Operation>& history, ScheduleResult& result) const {
    for (const Operation& operation : history) {
      // A read with a new expiry that finds nothing may have set one that has passed since.
      const bool lapsed = operation.outcome == Outcome::kUnknown && operation.expiry_ns != kNever;
      if (!options_.faults && !lapsed &&
          (operation.outcome == Outcome::kUnknown || operation.outcome == Outcome::kFailed)) {
        absl::StrAppend(&result.failure, NameOf(operation.kind), " has no answer, of status ",
                        operation.status_code, ", and nothing was broken\n");
        return;
      }
      if (options_.faults || operation.returned_ns == kNever) continue;
      // What was started is noticed only when the client has done with what it waits for.
      if (clients_many_at_once_.contains(operation.client)) continue;
      if (operation.returned_ns - operation.invoked_ns <= kDeadlineNs + kPatienceNs) continue;
      absl::StrAppend(&result.failure, NameOf(operation.kind), " of key ", operation.key,
                      " returned ", (operation.returned_ns - operation.invoked_ns) / kMs,
                      " ms after its call: ", NameOf(operation.outcome), ", status ",
                      operation.status_code, ", client ", operation.client, "\n");
      return;
    }
  }

  const ScheduleOptions options_;
  Random random_;
  RecordingBoard board_;
  std::unique_ptr<OperationLog> log_;
  std::list<SlewedClock> clocks_;  // of each kvd that there was
  SimulatedKvd::Options kvd_options_;
  std::unique_ptr<SimulatedKvd> kvd_;
  std::vector<int64_t> died_ns_;
  bool expiry_ = false;
  bool clock_jumps_ = false;
  std::vector<std::shared_ptr<SimulatedLink>> links_;
  std::vector<OneClient> clients_;
  OneClient* running_ = nullptr;
  std::set<uint16_t> clients_many_at_once_;
  uint64_t hot_keys_ = 8;
  uint32_t pollers_ = 1;
  uint64_t steps_ = 0;
  uint64_t breaks_ = 0;
  uint64_t deaths_ = 0;
};

}  // namespace

ScheduleResult RunSchedule(const ScheduleOptions& options) { return Schedule(options).Run(); }

}  // namespace kvd::test
