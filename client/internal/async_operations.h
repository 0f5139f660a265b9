// Operations of a client object that were started and not waited for.
//
//   GET     start -> READs, as its GetMachine asks for them -> done
//                 \-> by request, where the machine asks for the server -> (READ of the held item) -> done
//   writes  start -> request -> done
//
// A session that ends takes the READs with it: their GETs begin anew in the next one. Requests go on by themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "client/internal/connection.h"
#include "client/internal/observer.h"
#include "client/internal/read_queue.h"
#include "client/internal/read_slots.h"
#include "client/internal/request_queue.h"
#include "client/kv_client.h"

namespace kvd {

// What the caller wants; filled in by the caller.
struct AsyncOperation {
  bool is_get = false;
  std::string key;
  std::string payload;        // writes
  RequestHeader header{};     // writes
  std::span<char> into;       // GET into the caller's memory, if `has_into`
  bool has_into = false;
  std::shared_ptr<BufferMemory> buffer;  // GET into it, or the payload of a write lies at its beginning
  size_t buffer_payload_bytes = 0;
  int64_t deadline_ns = 0;
  int64_t observed_from_ns = 0;  // when it was started, if it is timed
  bool allows_for_size = false;  // the deadline of a GET, once it is known (transfer_time.h)
  Async async;
  Completion result;
};

// Sees to it that the item's value lies at the buffer's beginning, where a READ may have put it already. OutOfRange: it does not
// fit.
absl::Status PutInPlace(const ItemView& item, BufferMemory& buffer);

// One thread at a time.
class AsyncOperations final : ReadOwner {
 public:
  // All outlive this object.
  AsyncOperations(Connection& connection, ClientCounters& counters, Observer& observer)
      : connection_(connection), counters_(counters), observer_(observer) {}
  ~AsyncOperations();

  // Begins at once as far as it can without blocking.
  void Start(std::unique_ptr<AsyncOperation> operation);

  // Ends at once, with an error.
  void Refuse(std::unique_ptr<AsyncOperation> operation, absl::Status status);

  // Takes what READs and replies have come back, and ends what has passed its deadline.
  void Advance();

  // Ends what has a deadline before `now_ns`. Advance does so too, now and then.
  void Expire(int64_t now_ns);

  // In a child of fork(): what is here is the parent's. Nothing of it comes back or is given up any more.
  void LeaveToParent();

  // The session is about to end.
  void SessionEnds();

  // There is no session and there will be none: what waits for one ends with `why`.
  void FailWaiting(const absl::Status& why);

  // Hands completions out: calls those that have a callback, stores the others. Returns how many.
  size_t Deliver(std::span<Completion> completions);

  // Whether an operation that is timed has ended since the last call.
  bool TakeObserved() { return std::exchange(observed_, false); }

  bool anything_to_deliver() const { return !done_.empty(); }
  size_t outstanding() const { return live_.size() + done_.size(); }
  // The earliest deadline of what is under way; INT64_MAX: none.
  int64_t next_deadline_ns() const { return next_deadline_ns_; }

 private:
  enum class Stage : uint8_t { kWaiting, kReading, kRequested };
  struct Live {
    std::unique_ptr<AsyncOperation> operation;
    Stage stage = Stage::kWaiting;
    uint64_t hash = 0;
    Slot remembered = kEmptySlot;  // where the GET began to look
    ReadSlot* slot = nullptr;
    bool held = false;  // the server keeps the item for it
    bool known = false;  // found where it was remembered to lie
    Request request;
    std::list<Live>::iterator self;
  };

  void Begin(Live& live);
  void BeginGet(Live& live, Session& session);
  static GetMachine::Need First(const Live& live, GetMachine& machine);
  bool TakeSlot(Live& live, Session& session);
  bool FindInWindow(Live& live, Session& session);
  void Step(Live& live, GetMachine::Need need);
  void OnRead(ReadTicket& ticket) override;
  void Ask(Live& live);
  void OnReply(Live& live);
  void OnGetReply(Live& live);
  void OnWriteReply(Live& live);
  void FinishItem(Live& live, const ItemView& item, Slot slot);
  void FinishAbsent(Live& live, Session& session);
  void Finish(Live& live, absl::Status status);
  void Observe(const Live& live, const absl::Status& status);
  void GiveSlot(Live& live);
  void BeginWaiting();

  Connection& connection_;
  ClientCounters& counters_;
  Observer& observer_;
  bool observed_ = false;
  std::list<Live> live_;
  std::deque<std::unique_ptr<AsyncOperation>> done_;
  std::list<Live> parents_live_;
  std::deque<std::unique_ptr<AsyncOperation>> parents_done_;
  size_t waiting_ = 0;              // live ones in stage kWaiting
  int64_t next_deadline_ns_ = INT64_MAX;
  uint32_t advances_ = 0;
};

}  // namespace kvd
