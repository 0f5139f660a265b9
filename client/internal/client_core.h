// What the public Client is made of: the blocking operations, over a connection that heals.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/async_operations.h"
#include "client/internal/connection.h"
#include "client/internal/count_report.h"
#include "client/internal/event_set.h"
#include "client/internal/fork_guard.h"
#include "client/internal/item_result.h"
#include "client/internal/multi_get.h"
#include "client/internal/observer.h"
#include "client/internal/transfer_time.h"
#include "client/kv_client.h"
#include "common/base/clock.h"
#include "common/layout/units.h"

namespace kvd {

inline bool IsKey(std::string_view key) { return key.size() - 1 < kKeyBytesMax; }
// InvalidArgument if it is none, for people.
absl::Status CheckKey(std::string_view key);

class ClientCore : Connection::Listener {
 public:
  ClientCore(Connector connector, const ClientOptions& options)
      : default_deadline_ns_(options.deadline.count()),
        observer_(options),
        connection_(std::move(connector), options, *this),
        async_(connection_, counted_, observer_),
        multi_get_(connection_, counted_),
        fork_generation_(ForkGeneration()) {}

  absl::Status Open(int64_t deadline_ns) { return connection_.Open(deadline_ns); }

  // True in a child of the process that made this client.
  bool forked() const { return ForkGeneration() != fork_generation_; }

  Connection& connection() { return connection_; }
  const Connection& connection() const { return connection_; }
  AsyncOperations& async() {
    if (forked() && !std::exchange(left_to_parent_, true)) async_.LeaveToParent();
    return async_;
  }

  // Finds the key's item and calls `use(const ItemView&)` while its bytes are valid. NotFound if
  // there is none.
  template <typename Use>
  [[gnu::always_inline]] absl::Status WithItem(std::string_view key,
                                               const OperationOptions& options, const Use& use) {
    ItemView item;
    Begun begun;
    if (FindAtOnce(key, options, item, begun)) [[likely]] {
      return use(item);
    }
    return WithItemByMachine(key, options, begun,
                             [&use](const ItemView& found) { return use(found); });
  }

  // The value lies at the buffer's beginning afterwards; returns its length.
  absl::StatusOr<size_t> GetInto(std::string_view key, const std::shared_ptr<BufferMemory>& buffer,
                                 const OperationOptions& options);

  absl::Status MultiGet(std::span<const std::string_view> keys, std::span<GetResult> results,
                        const OperationOptions& options);

  // Sends `request` and waits for its reply. Ok: answered, whatever the answer. `deadline_ns`:
  // monotonic.
  absl::Status Call(Request& request, int64_t deadline_ns);
  // The same, and what the reply says.
  absl::Status CallForOk(Request& request, int64_t deadline_ns);

  // A write: one request, sent and answered.
  // `request.buffer` may be set: the payload then lies at its beginning.
  absl::Status Write(Opcode opcode, std::string_view key, std::string_view payload,
                     uint64_t argument, const WriteOptions& options, Request& request) {
    if (observer_.WriteIsDue()) [[unlikely]]
      return WriteObserved(opcode, key, payload, argument, options, request);
    return WriteOnce(opcode, key, payload, argument, options, request);
  }

  // Many writes of one kind at once: their keys and payloads are set.
  std::vector<absl::Status> WriteAll(Opcode opcode, std::span<Request> requests,
                                     const WriteOptions& options);
  absl::Status GetAndTouch(std::string_view key, std::string& value, ItemInfo* info,
                           const WriteOptions& options);

  // `into`: null, or the caller's memory.
  void StartGet(std::string_view key, const std::span<char>* into,
                std::shared_ptr<BufferMemory> buffer, Async async, const OperationOptions& options);
  void StartPutFrom(std::string_view key, std::shared_ptr<BufferMemory> buffer, size_t bytes,
                    Async async, const WriteOptions& options);
  void RefuseStart(Async async, absl::Status status) {
    auto operation = std::make_unique<AsyncOperation>();
    operation->async = std::move(async);
    this->async().Refuse(std::move(operation), std::move(status));
  }
  void StartWrite(Opcode opcode, std::string_view key, std::string_view payload, uint64_t argument,
                  Async async, const WriteOptions& options);

  size_t Poll(std::span<Completion> completions);
  size_t Wait(std::span<Completion> completions, int64_t timeout_ns);

  absl::StatusOr<int> EventFd();
  bool PrepareToSleep();

  absl::StatusOr<std::string> Scan(const Client::Visitor& visit, const ScanOptions& options);

  // Ok, or why this client cannot be used, or that there is no server in time.
  absl::Status Ready(int64_t deadline_ns);

  // What an application passes as `until - now` once `until` has come: the operation is not begun.
  static bool IsOver(std::chrono::nanoseconds deadline) { return deadline.count() < 0; }
  static absl::Status Over();

  // `value_bytes`: that are sent; of those that are fetched nobody knows yet. Not for a deadline
  // that is over.
  int64_t DeadlineNs(std::chrono::nanoseconds deadline, uint64_t value_bytes = 0) const {
    return DeadlineFrom(RealClock::Get().NowMonotonicNs(), deadline, value_bytes);
  }

  const ClientCounters& counters();
  const Observer& observer() const { return observer_; }

  // What the server has not been told yet, before the client is closed. Blocks for some
  // milliseconds at most.
  void TellLast();

  static constexpr int64_t kNoDeadline = INT64_MAX;

 private:
  static int64_t Sum(int64_t a, int64_t b) { return a < kNoDeadline - b ? a + b : kNoDeadline; }

  using UseItem = absl::FunctionRef<absl::Status(const ItemView&)>;

  static constexpr int64_t kDeadlineUnknown = 0;  // it takes a look at the clock

  // Whether Ready has nothing to do.
  bool ReadyAtOnce() {
    return !forked() && connection_.session() != nullptr &&
           connection_.session()->target_index == 0;
  }

  // What the quick way of a GET has done already when it gives up.
  struct Begun {
    int64_t deadline_ns = kDeadlineUnknown;
    RegionOffset bucket{};                    // where these bytes were read, if there are any
    std::span<const std::byte> bucket_bytes;  // the session's: until its next read
  };

  // The usual cases, in as few instructions as they take: false says nothing about the key. What is
  // inlined is not left to the compiler, whose choice costs twenty of them now and then.
  [[gnu::always_inline]] bool FindAtOnce(std::string_view key, const OperationOptions& options,
                                         ItemView& item, Begun& begun) {
    Session* const session = connection_.session();
    if (forked() || session == nullptr || !IsKey(key) || IsOver(options.deadline) ||
        observer_.GetIsDue()) [[unlikely]] {
      return false;  // one that is timed is begun anew, with a look at the clock
    }
    return FindInSession(*session, key, options, item, begun);
  }
  [[gnu::always_inline]] bool FindInSession(Session& session_now, std::string_view key,
                                            const OperationOptions& options, ItemView& item,
                                            Begun& begun) {
    Session* const session = &session_now;
    const uint64_t hash = session->Hash(key);
    if (session->mapped()) return FindInWindow(*session, key, hash, item);
    // A better target is looked for by the way that takes longer.
    if (into_ != nullptr || session->target_index != 0) return false;
    const Slot remembered = session->locations->Find(hash);
    if (remembered == kEmptySlot) return FindInBucket(*session, key, hash, options, item, begun);
    return FindRemembered(*session, key, hash, remembered, options, item, begun);
  }
  // By one READ of exactly the item, or of its bucket with all that lies in it.
  bool FindRemembered(Session& session, std::string_view key, uint64_t hash, Slot remembered,
                      const OperationOptions& options, ItemView& item, Begun& begun);
  bool FindInBucket(Session& session, std::string_view key, uint64_t hash,
                    const OperationOptions& options, ItemView& item, Begun& begun);
  // The bytes, or null: they could not be had at once, or in time.
  const std::byte* ReadAtOnce(Session& session, GetMachine::Read read,
                              const OperationOptions& options, Begun& begun);
  void CountHit(uint64_t hash, const ItemView& item);

  [[gnu::noinline]] bool FindInWindow(Session& session, std::string_view key, uint64_t hash,
                                      ItemView& item) {
    const Slot remembered = session.locations->Find(hash);
    Slot slot = remembered;
    if (remembered == kEmptySlot) [[likely]] {
      if (!session.window_get.Find(key, hash, item, slot)) return false;
      ++window_finds_;
      session.locations->Remember(hash, slot);
    } else {
      if (!session.window_get.FindAt(key, slot, item)) return false;
      ++window_location_hits_;
    }
    window_read_bytes_ += ItemBytesOf(slot);
    if (!session.window_get.ServerAlive()) return false;
    if (item.expiry_unix_us != 0) [[unlikely]]
      RefreshClock();
    connection_.NoteHit(hash, item.value.size());
    return true;
  }

  // All of it, with a look at the clock before and after.
  [[gnu::noinline]] absl::Status WithItemObserved(Session& session, std::string_view key,
                                                  const OperationOptions& options, UseItem use);
  [[gnu::noinline]] absl::Status WithItemByMachine(std::string_view key,
                                                   const OperationOptions& options, Begun begun,
                                                   UseItem use);
  absl::Status FindItem(Session& session, std::string_view key, const Begun& begun, UseItem use);
  absl::Status FindItemByRequest(std::string_view key, int64_t deadline_ns, UseItem use);
  // The item that the reply to a GET by request says, or leads to.
  absl::Status UseGetReply(std::string_view key, const Request& request, int64_t deadline_ns,
                           UseItem use);
  void MultiGetInWindow(Session& session, std::span<const std::string_view> keys,
                        std::span<GetResult> results, const OperationOptions& options);
  absl::Status GetOne(std::string_view key, GetResult& result, const OperationOptions& options);
  // Ready, and for a time to live also with the server's clock as it is now, asked for if what is
  // known of it is old or poor.
  absl::Status ReadyToWrite(const WriteOptions& options, int64_t deadline_ns);
  // Checks key, payload and options of a write and fills its header.
  absl::Status Prepare(Opcode opcode, std::string_view key, std::string_view payload,
                       const WriteOptions& options, RequestHeader& header);
  absl::Status WriteOnce(Opcode opcode, std::string_view key, std::string_view payload,
                         uint64_t argument, const WriteOptions& options, Request& request);
  [[gnu::noinline]] absl::Status WriteObserved(Opcode opcode, std::string_view key,
                                               std::string_view payload, uint64_t argument,
                                               const WriteOptions& options, Request& request);
  absl::Status MultiGetOnce(std::span<const std::string_view> keys, std::span<GetResult> results,
                            const OperationOptions& options);
  std::vector<absl::Status> WriteAllOnce(Opcode opcode, std::span<Request> requests,
                                         const WriteOptions& options);
  // What a deadline of so long from `now_ns` on is; otherwise as DeadlineNs.
  int64_t DeadlineFrom(int64_t now_ns, std::chrono::nanoseconds deadline,
                       uint64_t value_bytes) const {
    const int64_t timeout_ns = deadline.count() > 0
                                   ? deadline.count()
                                   : Sum(default_deadline_ns_, TransferAllowanceNs(value_bytes));
    return timeout_ns < kNoDeadline - now_ns ? now_ns + timeout_ns : kNoDeadline;
  }
  // Waits until all of `requests`, which were submitted, are done, or gives the rest up.
  void Await(std::span<Request> requests, int64_t deadline_ns);
  static absl::Status Forked();
  void FinishSleep();
  void RefreshClock();
  // Tells the server what it does not see, if it is time. Never blocks, and ends no session.
  void ReportIfDue(int64_t now_ns) {
    if (report_.due(now_ns)) [[unlikely]]
      Report(now_ns);
  }
  void Report(int64_t now_ns);
  void SessionBegins(bool same_server) override;
  void SessionEnds(Session& session) override;
  void ConnectionFailed(const absl::Status& cause) override;
  static void AddSession(const Session& session, ClientCounters& sum);

  const int64_t default_deadline_ns_;
  Observer observer_;
  ClientCounters counted_;  // of operations, and of sessions that have ended
  CountReport report_;
  Connection connection_;
  AsyncOperations async_;
  MultiGetter multi_get_;
  std::unique_ptr<EventSet> events_;
  uint32_t polls_ = 0;
  uint64_t watched_session_ = 0;        // by its number
  bool asleep_ = false;                 // PrepareToSleep has returned true
  Request request_;                     // of the blocking operation at hand
  std::shared_ptr<BufferMemory> into_;  // where the GET at hand wants its value
  const uint32_t fork_generation_;
  bool left_to_parent_ = false;  // after fork(): what was under way then
  uint64_t window_finds_ = 0;
  uint64_t window_location_hits_ = 0;
  uint64_t window_read_bytes_ = 0;  // of items
  ClientCounters counters_;         // what counters() last returned
};

// Ok if it may be a key.

}  // namespace kvd
