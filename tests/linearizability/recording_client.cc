#include "tests/linearizability/recording_client.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <span>
#include <string>
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

constexpr size_t kUnderWayMax = 6;

constexpr uint64_t kBreathKeys = 3000;
constexpr std::chrono::seconds kWait{1};

constexpr uint64_t kTtlUsMin = 20'000;
constexpr uint64_t kTtlUsMax = 2'000'000;
// Operations for one scan, and how many keys of one are written down.
constexpr uint64_t kScanOneIn = 2000;
constexpr uint64_t kColdKeysScanned = 64;
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
    while (under_way_ > 0 && !board_.broken.load() && Await()) {
    }
    AddCounters();
    return 0;
  }

 private:
  // One more operation, or several. False: the recording is over.
  bool Next() {
    switch (plan_.habit) {
      case RecordingPlan::Habit::kAny:
        return random_.OneIn(kScanOneIn) ? Scan() : Call(AnyKey());
      case RecordingPlan::Habit::kFills:
        if (random_.OneIn(16)) return Call(AnyKey());
        return Call(board_.keys.fetch_add(1), FirstOf(OperationKind::kPut));
      case RecordingPlan::Habit::kBreathes:
        return random_.OneIn(16) ? Call(AnyKey()) : Breathe();
      case RecordingPlan::Habit::kManyAtOnce:
        return StartUntilFull() && Await();
      case RecordingPlan::Habit::kReads:
        return Call(MovingKey(), FirstOf(OperationKind::kGet));
    }
    return false;
  }

  bool Breathe() {
    if (breath_begin_ == 0) breath_begin_ = board_.keys.fetch_add(kBreathKeys);
    const uint64_t step = breath_++ % (2 * kBreathKeys);
    return Call(breath_begin_ + step % kBreathKeys,
                FirstOf(step < kBreathKeys ? OperationKind::kPut : OperationKind::kDelete));
  }

  uint64_t MovingKey() {
    return random_.Uniform(plan_.hot_keys / kHotRoles) * kHotRoles +
           static_cast<uint64_t>(KeyRole::kMoving);
  }

  static const RecordedKind& FirstOf(OperationKind wanted) {
    const std::span<const RecordedKind> kinds = RecordedKinds();
    return *std::find_if(kinds.begin(), kinds.end(),
                         [&](const RecordedKind& kind) { return kind.kind == wanted; });
  }

  uint64_t AnyKey() {
    const uint64_t keys = board_.keys.load(std::memory_order_relaxed);
    if (keys <= plan_.hot_keys || !random_.OneIn(plan_.cold_one_in)) {
      return random_.Uniform(plan_.hot_keys);
    }
    // Half of them are new ones, near the buckets that are being split.
    const uint64_t back = random_.Uniform(random_.OneIn(2) ? 64 : keys) + 1;
    return std::max(plan_.hot_keys, keys - std::min(keys, back));
  }

  const RecordedKind& AnyKind(uint64_t key) {
    const auto& choices = choices_[static_cast<size_t>(RoleOf(key, plan_.hot_keys))];
    return *choices[random_.Uniform(choices.size())];
  }

  // An operation that is under way.
  struct Begun {
    Operation operation;
    Operation* slot = nullptr;  // null: none
  };

  // False: the log is full.
  bool Begin(uint64_t key, const RecordedKind& kind, Begun& begun) {
    const KeyRole role = RoleOf(key, plan_.hot_keys);
    begun.operation = {};
    begun.operation.key = key;
    begun.operation.kind = kind.kind;
    begun.operation.client = plan_.client;
    Choose(role, begun.operation);
    key_ = RecordedKey(key);
    if (!IsRead(kind.kind)) EncodeValue(role, key, begun.operation.written, written_);
    begun.slot = writer_.Begin(begun.operation);
    return begun.slot != nullptr;
  }

  RecordedCall CallNow() { return {*client_, key_, written_, read_, buffer_, expiry_unix_us_}; }

  bool Call(uint64_t key) { return Call(key, AnyKind(key)); }

  bool Call(uint64_t key, const RecordedKind& kind) {
    Begun begun;
    if (!Begin(key, kind, begun)) return false;
    Begun read;
    if (kind.reads && !BeginRead(key, read)) return false;
    const uint64_t looked = kind.reads ? Looked() : 0;
    const absl::Status status = kind.call(CallNow(), begun.operation);
    begun.operation.returned_ns = OrderedNowNs();
    if (!kind.reads) return End(begun, status, read_);
    return EndBoth(begun, read, status, Looked() != looked);
  }

  // Changes where a write that also reads looked for the item by itself, after its answer.
  uint64_t Looked() const {
    const ClientCounters& counters = client_->counters();
    return counters.gets + counters.gets_by_request + counters.reconnects;
  }

  bool BeginRead(uint64_t key, Begun& read) {
    read.operation = {};
    read.operation.key = key;
    read.operation.kind = OperationKind::kGet;
    read.operation.client = plan_.client;
    read.slot = writer_.Begin(read.operation);
    return read.slot != nullptr;
  }

  // A write that also reads. Where it had to look again, what was read may be of a later version
  // than what was written; where nothing was found, it may have been written and have gone since.
  bool EndBoth(Begun& write, Begun& read, const absl::Status& status, bool looked_again) {
    read.operation.returned_ns = write.operation.returned_ns;
    read.operation.version = write.operation.version;
    if (!End(read, absl::IsUnknown(status) ? absl::UnavailableError("") : status, read_)) {
      return false;
    }
    if (looked_again) write.operation.version = 0;
    const bool may_have_gone = looked_again || write.operation.expiry_ns != kNever;
    return End(write, absl::IsNotFound(status) && may_have_gone ? absl::UnknownError("") : status,
               {});
  }

  // What a scan visits it has read; what it does not visit was not there at some moment of it. So
  // of each key it is a GET.
  bool Scan() {
    std::map<std::string, Begun> wanted;
    const uint64_t keys = board_.keys.load(std::memory_order_relaxed);
    for (uint64_t key = 0; key < plan_.hot_keys; ++key)
      wanted[RecordedKey(key)].operation.key = key;
    for (uint64_t i = 0; i < kColdKeysScanned && keys > plan_.hot_keys; ++i) {
      const uint64_t key = random_.Between(plan_.hot_keys, keys - 1);
      wanted[RecordedKey(key)].operation.key = key;
    }
    for (auto& [name, begun] : wanted) {
      if (!BeginRead(begun.operation.key, begun)) return false;
    }
    std::map<std::string, std::string, std::less<>> found;
    ScanOptions options;
    options.deadline = plan_.options.deadline;
    const auto visit = [&](std::string_view key, std::string_view value, const ItemInfo& info) {
      const auto at = wanted.find(std::string(key));
      if (at != wanted.end() && found.try_emplace(at->first, value).second) {
        at->second.operation.version = info.version;
        at->second.operation.returned_ns = OrderedNowNs();
      }
      return true;
    };
    const auto scanned = client_->Scan(visit, options);
    const int64_t now_ns = OrderedNowNs();
    if (scanned.ok()) board_.scans.fetch_add(1);
    for (auto& [name, begun] : wanted) {
      const auto value = found.find(name);
      absl::Status status = scanned.status();
      if (value != found.end()) {
        status = absl::OkStatus();
      } else if (status.ok()) {
        status = absl::NotFoundError("");
        begun.operation.returned_ns = now_ns;
      }
      if (!End(begun, status, value != found.end() ? value->second : std::string())) return false;
    }
    return true;
  }

  bool StartUntilFull() {
    for (size_t i = 0; i < begun_.size(); ++i) {
      if (begun_[i].slot != nullptr) continue;
      const uint64_t key = AnyKey();
      const RecordedKind& kind = AnyKind(key);
      if (kind.start == nullptr) return Call(key, kind);
      if (!Begin(key, kind, begun_[i])) return false;
      kind.start(CallNow(), begun_[i].operation, {.tag = i, .done = nullptr});
      ++under_way_;
    }
    return true;
  }

  bool Await() {
    std::array<Completion, kUnderWayMax> completions;
    const size_t count = client_->Wait(completions, kWait);
    const int64_t now_ns = OrderedNowNs();
    for (Completion& completion : std::span(completions).first(count)) {
      Begun& begun = begun_[completion.tag];
      begun.operation.returned_ns = now_ns;
      begun.operation.version = completion.status.ok() ? completion.info.version : 0;
      if (begun.operation.kind == OperationKind::kIncrement) {
        begun.operation.read = Number(completion.number);
      }
      --under_way_;
      if (!End(begun, completion.status, completion.value)) return false;
    }
    return true;
  }

  // Writes down how it ended. False: not in a way that is allowed.
  bool End(Begun& begun, const absl::Status& status, std::string_view read) {
    Operation& operation = begun.operation;
    NoteDuration(operation);
    operation.status_code = static_cast<int32_t>(status.code());
    if (!OutcomeOf(status, operation.kind, operation.outcome)) return Break(operation, status);
    if (operation.outcome == Outcome::kOk && operation.kind == OperationKind::kGet) {
      operation.read = DecodeValue(RoleOf(operation.key, plan_.hot_keys), operation.key, read);
    }
    if (operation.outcome == Outcome::kFailed && IsRead(operation.kind)) {
      writer_.StrikeOut(begun.slot);
    } else {
      writer_.End(begun.slot, operation);
    }
    begun.slot = nullptr;
    if (operation.outcome == Outcome::kUnknown) board_.unknown.fetch_add(1);
    if (operation.outcome == Outcome::kFailed) usleep(kPauseUs);
    if (operation.version != 0 && operation.key < plan_.hot_keys) {
      versions_[operation.key] = operation.version;
    }
    return true;
  }

  // A client that is stopped is late through no fault of its own.
  void NoteDuration(const Operation& operation) {
    if (operation.returned_ns == kNever) return;
    const int64_t deadline_ns = std::chrono::nanoseconds(plan_.options.deadline).count();
    const int64_t over_ns = operation.returned_ns - operation.invoked_ns - deadline_ns;
    uint64_t longest = board_.longest_over_deadline_ns.load(std::memory_order_relaxed);
    while (over_ns > 0 && static_cast<uint64_t>(over_ns) > longest &&
           !board_.longest_over_deadline_ns.compare_exchange_weak(longest,
                                                                  static_cast<uint64_t>(over_ns))) {
    }
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
    if (plan_.expiry && MayExpire(role) && may_expire && random_.OneIn(4)) Expire(operation);
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
    board_.reconnects += counters.reconnects;
  }

  const RecordingPlan& plan_;
  RecordingBoard& board_;
  LogWriter writer_;
  const std::unique_ptr<Client> client_;
  uint64_t breath_begin_ = 0;  // 0: not chosen yet
  uint64_t breath_ = 0;
  Random random_;
  std::vector<uint64_t> versions_;  // the last that this client has seen of each hot key
  // Kinds for each role, as often as they weigh.
  std::array<std::vector<const RecordedKind*>, kHotRoles + 1> choices_;
  uint64_t writes_ = 0;
  std::array<Begun, kUnderWayMax> begun_;
  size_t under_way_ = 0;
  std::string key_;
  std::string written_;
  std::string read_;
  Buffer buffer_;
  int64_t expiry_unix_us_ = 0;
};

}  // namespace

int RunRecordingClient(const RecordingPlan& plan, RecordingBoard& board, OperationLog& log) {
  return RunRecordingClient(plan, board, log,
                            [&] { return Client::Connect(plan.target, plan.options); });
}

int RunRecordingClient(const RecordingPlan& plan, RecordingBoard& board, OperationLog& log,
                       const std::function<absl::StatusOr<std::unique_ptr<Client>>()>& connect) {
  while (!board.stop.load()) {
    auto client = connect();
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
