// GETs of many keys whose READs go out together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "client/internal/connection.h"
#include "client/internal/read_queue.h"
#include "client/internal/read_slots.h"
#include "client/kv_client.h"

namespace kvd {

// One batch at a time, over one session.
class MultiGetter final : ReadOwner {
 public:
  // Both outlive this object. Of the counters, those of remembered locations are this object's to
  // count.
  MultiGetter(Connection& connection, ClientCounters& counters)
      : connection_(connection), counters_(counters) {}
  ~MultiGetter() = default;

  // Gets what it can of `keys`, which have been checked, one-sidedly: results of OK and NOT_FOUND
  // are final. Those that need the server, or that failed, are left as UNAVAILABLE for the caller
  // to get one by one. Blocks up to `deadline_ns`. Needs a session. `allow_for_size`: for long
  // values longer (transfer_time.h).
  void Run(std::span<const std::string_view> keys, std::span<GetResult> results,
           int64_t deadline_ns, bool allow_for_size);

  // The session is about to end.
  void SessionEnds();

 private:
  // One key under way.
  struct Lane {
    size_t index = 0;
    uint64_t hash = 0;
    ReadSlot* slot = nullptr;
    Slot remembered = kEmptySlot;  // where the GET began to look
    GetMachine::Read first{};      // under way, of those cases that need no machine; length 0: none
  };

  bool Begin(size_t index);
  // Begins again after a first READ that did not settle it, whose bytes are used if they fit.
  void BeginByMachine(Lane& lane, std::span<const std::byte> bytes);
  void Step(Lane& lane, GetMachine::Need need);
  void Post(Lane& lane, const GetMachine::Read& read);
  void Found(Lane& lane, const ItemView& item, Slot slot);
  void End(Lane& lane);
  void OnRead(ReadTicket& ticket) override;
  void Abandon();

  Connection& connection_;
  ClientCounters& counters_;
  Session* session_ = nullptr;
  std::span<const std::string_view> keys_;
  std::span<GetResult> results_;
  std::vector<Lane> lanes_;
  std::vector<Lane*> free_;
  int64_t deadline_ns_ = 0;
  bool allows_for_size_ = false;
  size_t next_ = 0;  // of keys_
  size_t under_way_ = 0;
};

}  // namespace kvd
