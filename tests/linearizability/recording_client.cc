#include "tests/linearizability/recording_client.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "common/base/random.h"
#include "tests/linearizability/operation_table.h"
#include "tests/linearizability/recorded_value.h"

namespace kvd::test {
namespace {

// A pause of a client that finds no server: less would only fill the log.
constexpr useconds_t kPauseUs = 1000;

constexpr uint64_t kTtlUsMin = 20'000;
constexpr uint64_t kTtlUsMax = 200'000;
constexpr int64_t kClocksApartNsMax = 100'000;

class RecordingClient {
 public:
  RecordingClient(const RecordingPlan& plan, RecordingBoard& board, OperationLog& log,
                  std::unique_ptr<Client> client)
      : plan_(plan),
        board_(board),
        writer_(log),
        client_(std::move(client)),
        random_(Mix64(plan.seed) + plan.client),
        versions_(plan.hot_keys, 0) {
    for (const RecordedKind& kind : RecordedKinds()) {
      for (uint32_t role = 0; role <= kHotRoles; ++role) {
        if ((kind.roles >> role & 1) == 0) continue;
        choices_[role].insert(choices_[role].end(), kind.weight, &kind);
      }
    }
  }

  int Run() {
    while (!board_.stop.load(std::memory_order_relaxed) && !board_.broken.load()) {
      if (!Next()) break;
    }
    AddCounters();
    return 0;
  }

 private:
  // False: the recording is over.
  bool Next() {
    if (plan_.habit == RecordingPlan::Habit::kReads) {
      const uint64_t moving = plan_.hot_keys / kHotRoles;
      const uint64_t key = random_.Uniform(moving) * kHotRoles;
      return Do(key + static_cast<uint64_t>(KeyRole::kMoving), FirstOf(OperationKind::kGet));
    }
    if (plan_.habit != RecordingPlan::Habit::kFills || random_.OneIn(16)) return Any();
    return Do(board_.keys.fetch_add(1), FirstOf(OperationKind::kPut));
  }

  static const RecordedKind& FirstOf(OperationKind wanted) {
    const std::span<const RecordedKind> kinds = RecordedKinds();
    return *std::find_if(kinds.begin(), kinds.end(),
                         [&](const RecordedKind& kind) { return kind.kind == wanted; });
  }

  bool Any() {
    const uint64_t keys = board_.keys.load(std::memory_order_relaxed);
    uint64_t key = random_.Uniform(plan_.hot_keys);
    if (keys > plan_.hot_keys && random_.OneIn(plan_.cold_one_in)) {
      // Half of them are new ones, near the buckets that are being split.
      const uint64_t back = random_.OneIn(2) ? 64 : keys;
      key = std::max(plan_.hot_keys, keys - std::min(keys, random_.Uniform(back) + 1));
    }
    const KeyRole role = RoleOf(key, plan_.hot_keys);
    const auto& choices = choices_[static_cast<size_t>(role)];
    return Do(key, *choices[random_.Uniform(choices.size())]);
  }

  bool Do(uint64_t key, const RecordedKind& kind) {
    const KeyRole role = RoleOf(key, plan_.hot_keys);
    Operation operation;
    operation.key = key;
    operation.kind = kind.kind;
    operation.client = plan_.client;
    Choose(role, operation);
    key_ = RecordedKey(key);
    if (!IsRead(kind.kind)) EncodeValue(role, key, operation.written, written_);

    if (!writer_.Begin(operation)) return false;
    const absl::Status status =
        kind.call({*client_, key_, written_, read_, expiry_unix_us_}, operation);
    operation.returned_ns = OrderedNowNs();

    operation.status_code = static_cast<int32_t>(status.code());
    if (!OutcomeOf(status, kind.kind, operation.outcome)) return Break(operation, status);
    if (operation.outcome == Outcome::kOk && kind.kind == OperationKind::kGet) {
      operation.read = DecodeValue(role, key, read_);
    }
    Finish(operation);
    return true;
  }

  // What the operation is called with.
  void Choose(KeyRole role, Operation& operation) {
    const bool number = role == KeyRole::kNumber;
    operation.written = number ? Number(static_cast<int64_t>(random_.Uniform(1000)))
                               : Blob(uint64_t{plan_.client} << 40 | ++writes_);
    operation.delta = static_cast<int64_t>(random_.Between(1, 1000)) - 500;
    if (operation.kind == OperationKind::kPutIfVersion ||
        operation.kind == OperationKind::kDeleteIfVersion) {
      operation.compare_version = std::max<uint64_t>(1, versions_[operation.key]);
    }
    expiry_unix_us_ = 0;
    const bool may_expire = IsPut(operation.kind) || operation.kind == OperationKind::kTouch;
    if (plan_.expiry && role == kExpiringRole && may_expire && random_.OneIn(4)) Expire(operation);
  }

  // The same moment by the clock of the history and by that of the server.
  void Expire(Operation& operation) {
    const auto ttl_us = static_cast<int64_t>(random_.Between(kTtlUsMin, kTtlUsMax));
    int64_t before_ns = 0;
    int64_t unix_us = 0;
    do {
      before_ns = OrderedNowNs();
      unix_us = client_->ServerUnixUs();
    } while (OrderedNowNs() - before_ns > kClocksApartNsMax);
    operation.expiry_ns = before_ns + ttl_us * 1000;
    expiry_unix_us_ = unix_us + ttl_us;
  }

  void Finish(const Operation& operation) {
    if (operation.outcome == Outcome::kFailed && IsRead(operation.kind)) {
      writer_.StrikeOut();
    } else {
      writer_.End(operation);
    }
    if (operation.outcome == Outcome::kUnknown) board_.unknown.fetch_add(1);
    if (operation.outcome == Outcome::kFailed) usleep(kPauseUs);
    if (operation.version != 0 && operation.key < plan_.hot_keys) {
      versions_[operation.key] = operation.version;
    }
  }

  bool Break(const Operation& operation, const absl::Status& status) {
    std::fprintf(stderr, "client %u: %s of key %lu: %s\n", plan_.client, NameOf(operation.kind),
                 operation.key, status.ToString().c_str());
    board_.broken.store(true);
    return false;
  }

  void AddCounters() {
    const ClientCounters& counters = client_->counters();
    board_.torn_reads += counters.torn_reads;
    board_.moved_items += counters.moved_items;
    board_.redirects += counters.redirects;
    board_.confirmations += counters.confirmations;
    board_.location_hits += counters.location_hits;
    board_.stale_locations += counters.stale_locations;
    board_.gets_by_request += counters.gets_by_request;
  }

  const RecordingPlan& plan_;
  RecordingBoard& board_;
  LogWriter writer_;
  const std::unique_ptr<Client> client_;
  Random random_;
  std::vector<uint64_t> versions_;  // the last that this client has seen of each hot key
  // Kinds for each role, as often as they weigh.
  std::array<std::vector<const RecordedKind*>, kHotRoles + 1> choices_;
  uint64_t writes_ = 0;
  std::string key_;
  std::string written_;
  std::string read_;
  int64_t expiry_unix_us_ = 0;
};

}  // namespace

int RunRecordingClient(const RecordingPlan& plan, RecordingBoard& board, OperationLog& log) {
  while (!board.stop.load()) {
    auto client = Client::Connect(plan.target, plan.options);
    if (client.ok()) return RecordingClient(plan, board, log, *std::move(client)).Run();
    if (!absl::IsUnavailable(client.status()) && !absl::IsDeadlineExceeded(client.status())) {
      std::fprintf(stderr, "client %u: %s\n", plan.client, client.status().ToString().c_str());
      board.broken.store(true);
      return 1;
    }
    usleep(kPauseUs);
  }
  return 0;
}

}  // namespace kvd::test
