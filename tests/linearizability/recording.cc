#include "tests/linearizability/recording.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <new>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>

#include "common/base/status_macros.h"

namespace kvd::test {
namespace {

constexpr useconds_t kLookUs = 200;  // how often what the clients do is looked at

// For what the last clients held: reservations and holds end with their sessions, within seconds.
constexpr useconds_t kLookForLeftUs = 10'000;
constexpr int kLooksForLeft = 3000;

uint64_t OpenDescriptors(pid_t pid) {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/fd", error);
  return static_cast<uint64_t>(std::distance(begin(all), end(all)));
}

}  // namespace

std::unique_ptr<Recording> Recording::Create(const RecordingOptions& options) {
  void* const memory = mmap(nullptr, sizeof(RecordingBoard), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  // Clients take slots in advance, and fail while there is no kvd.
  auto log = OperationLog::Create(options.operations + options.operations / 2 + 65536);
  if (memory == MAP_FAILED || log == nullptr) return nullptr;
  return std::unique_ptr<Recording>(
      new Recording(options, *new (memory) RecordingBoard, std::move(log)));
}

Recording::Recording(const RecordingOptions& options, RecordingBoard& board,
                     std::unique_ptr<OperationLog> log)
    : options_(options), board_(board), log_(std::move(log)), random_(options.seed) {
  board_.keys.store(options_.hot_keys);
}

Recording::~Recording() {
  EndClients();
  munmap(&board_, sizeof(board_));
}

absl::Status Recording::Run() {
  KVD_RETURN_IF_ERROR(StartKvd());
  {
    KVD_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(kvd_.target()));
    KVD_RETURN_IF_ERROR(client->Ping().status());
    kvd_descriptors_ = OpenDescriptors(kvd_.pid());
  }
  clients_.resize(options_.clients + options_.fillers + options_.breathers + options_.readers);
  for (size_t place = 0; place < clients_.size(); ++place) StartClient(place);
  for (const Planned& planned : Plan()) {
    while (Going() && log_->taken() < planned.at) usleep(kLookUs);
    if (Going()) KVD_RETURN_IF_ERROR(Disturb(planned.what));
  }
  while (Going()) usleep(kLookUs);
  board_.stop.store(true);
  EndClients();
  if (board_.broken.load()) return absl::InternalError("a client met what no contract allows");
  KVD_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(kvd_.target()));
  KVD_RETURN_IF_ERROR(ReadStatistics(*client));
  return CheckNothingLeft(*client);
}

absl::Status Recording::StartKvd() {
  if (options_.clock != nullptr) options_.clock->BeginOfKvd();
  const absl::Status started = kvd_.Start(options_.kvd, options_.kvd_flags);
  if (options_.clock != nullptr) options_.clock->EndOfKvd();
  return started;
}

absl::Status Recording::CheckNothingLeft(Client& client) {
  KVD_RETURN_IF_ERROR(client.Flush("").status());
  std::string left;
  for (int looks = 0; looks < kLooksForLeft; ++looks) {
    KVD_ASSIGN_OR_RETURN(const auto statistics, client.Stats());
    left.clear();
    for (const auto& [name, value] : statistics) {
      const bool none = name == "items" || name == "heap_used_bytes";
      if ((none && value != "0") || (name == "sessions" && value != "1"))
        left += name + " " + value + " ";
    }
    // Over RDMA kvd keeps the memory for as many clients as it ever had at once.
    const uint64_t descriptors = OpenDescriptors(kvd_.pid());
    if (options_.rdma_target.empty() && descriptors > kvd_descriptors_) {
      left += "descriptors " + std::to_string(descriptors) + ", before " +
              std::to_string(kvd_descriptors_);
    }
    if (left.empty()) return absl::OkStatus();
    usleep(kLookForLeftUs);
  }
  return absl::InternalError("when all clients had gone kvd still had: " + left);
}

absl::Status Recording::ReadStatistics(Client& client) {
  KVD_ASSIGN_OR_RETURN(const auto statistics, client.Stats());
  for (const auto& [name, value] : statistics) {
    const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (name == "expired_items") board_.expired_items = number;
    if (name == "evicted_items") board_.evicted_items = number;
    if (name == "merges") board_.merges = number;
    if (name == "index_bytes_given_back") board_.index_bytes_given_back = number;
  }
  return absl::OkStatus();
}

bool Recording::Going() const {
  return log_->taken() < options_.operations && !board_.broken.load();
}

std::vector<Recording::Planned> Recording::Plan() {
  std::vector<Planned> plan;
  const auto add = [&](uint32_t times, Disturbance what) {
    for (uint32_t i = 0; i < times; ++i) {
      plan.push_back({random_.Between(options_.operations / 50, options_.operations), what});
    }
  };
  add(options_.client_kills, Disturbance::kClientKill);
  add(options_.client_stops, Disturbance::kClientStop);
  add(options_.kvd_stops, Disturbance::kKvdStop);
  add(options_.kvd_restarts, Disturbance::kKvdRestart);
  add(options_.clock_jumps, Disturbance::kClockJump);
  std::sort(plan.begin(), plan.end(),
            [](const Planned& a, const Planned& b) { return a.at < b.at; });
  return plan;
}

absl::Status Recording::Disturb(Disturbance what) {
  const size_t place = random_.Uniform(clients_.size());
  switch (what) {
    case Disturbance::kClientKill:
      kill(clients_[place], SIGKILL);
      waitpid(clients_[place], nullptr, 0);
      StartClient(place);
      ++faults_.client_kills;
      break;
    case Disturbance::kClientStop:
      kill(clients_[place], SIGSTOP);
      WaitForOperations(random_.Between(20, 500), UINT64_MAX);
      kill(clients_[place], SIGCONT);
      ++faults_.client_stops;
      break;
    case Disturbance::kKvdStop:
      kvd_.Stop();
      WaitForOperations(UINT64_MAX, random_.Between(1, clients_.size()));
      kvd_.Continue();
      ++faults_.kvd_stops;
      break;
    case Disturbance::kKvdRestart:
      ++faults_.kvd_kills;
      return RestartKvd();
    case Disturbance::kClockJump:
      options_.clock->Jump(random_);
      ++faults_.clock_jumps;
      break;
  }
  return absl::OkStatus();
}

void Recording::WaitForOperations(uint64_t more, uint64_t unknown_more) const {
  const uint64_t taken = log_->taken();
  const uint64_t unknown = board_.unknown.load();
  while (Going() && log_->taken() - taken < more &&
         board_.unknown.load() - unknown < unknown_more) {
    usleep(kLookUs);
  }
}

void Recording::StartClient(size_t place) {
  const uint16_t number = ++clients_started_;
  RecordingPlan plan;
  plan.target = kvd_.target();
  if (!options_.rdma_target.empty() && place % 4 != 3) plan.target = options_.rdma_target;
  plan.options.deadline = std::chrono::milliseconds(options_.deadline_ms);
  plan.options.location_cache_entries = place % 2 == 0 ? 4096 : 0;
  plan.options.read_whole_buckets = place % 4 == 3;
  plan.seed = options_.seed;
  plan.hot_keys = options_.hot_keys;
  plan.client = number;
  plan.expiry = options_.expiry;
  if (place % 4 == 1) plan.habit = RecordingPlan::Habit::kManyAtOnce;
  if (place >= options_.clients) plan.habit = RecordingPlan::Habit::kFills;
  if (place >= options_.clients + options_.fillers) plan.habit = RecordingPlan::Habit::kBreathes;
  if (place >= options_.clients + options_.fillers + options_.breathers) {
    plan.habit = RecordingPlan::Habit::kReads;
    plan.options.location_cache_entries = 0;
  }
  clients_[place] = fork();
  if (clients_[place] == 0) std::_Exit(RunRecordingClient(plan, board_, *log_));
}

void Recording::EndClients() {
  for (pid_t& client : clients_) {
    // One that is in the middle of something that never ends must not be waited for for ever.
    for (int looks = 0; client > 0 && looks < 100'000; ++looks) {
      if (waitpid(client, nullptr, WNOHANG) != 0) client = 0;
      if (client > 0) usleep(kLookUs);
    }
    if (client <= 0) continue;
    kill(client, SIGKILL);
    waitpid(client, nullptr, 0);
    client = 0;
    board_.broken.store(true);
  }
}

absl::Status Recording::RestartKvd() {
  Death death;
  death.began_ns = OrderedNowNs();
  kvd_.Kill();
  death.dead_ns = OrderedNowNs();
  KVD_RETURN_IF_ERROR(StartKvd());
  death.serving_ns = OrderedNowNs();
  deaths_.push_back(death);
  return absl::OkStatus();
}

// A write without an answer has taken effect in the kvd that it was sent to, or not at all.
void Recording::BoundEffect(Operation& operation) const {
  const bool session_ended =
      operation.status_code == static_cast<int32_t>(absl::StatusCode::kUnknown);
  for (const Death& death : deaths_) {
    if (operation.returned_ns == kNever || operation.returned_ns < death.dead_ns) break;
    // Given up while there was no kvd, or because its session had ended.
    const bool after = operation.returned_ns < death.serving_ns ||
                       (session_ended && operation.invoked_ns < death.dead_ns);
    if (after) operation.effect_until_ns = death.dead_ns;
  }
}

std::vector<Operation> Recording::History() const {
  std::vector<Operation> history = log_->Collect();
  std::unordered_set<uint64_t> keys;
  for (Operation& operation : history) {
    if (operation.outcome == Outcome::kUnknown) BoundEffect(operation);
    keys.insert(operation.key);
  }
  for (const Death& death : deaths_) {
    for (const uint64_t key : keys) {
      Operation& loss = history.emplace_back();
      loss.kind = OperationKind::kLost;
      loss.outcome = Outcome::kOk;
      loss.key = key;
      loss.invoked_ns = death.began_ns;
      loss.returned_ns = death.serving_ns;
    }
  }
  return history;
}

}  // namespace kvd::test
