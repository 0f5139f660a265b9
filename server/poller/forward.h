// A request that arrived at one poller and whose key belongs to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/protocol/request_codec.h"
#include "common/transport/server_endpoint.h"
#include "server/operations/operations.h"
#include "server/operations/reply_cache.h"
#include "server/poller/mailbox.h"
#include "server/poller/request_timing.h"

namespace kvd {

// Travels from its home (where the client's channel is) to the owner of the shard and back, in one
// object that belongs to the home. A pulled value travels twice: to reserve, and after the pull to
// finish.
struct Forward : MailboxNode {
  enum class Step : uint8_t {
    kExecute,  // -> `outcome`
    kReserve,  // -> `reserved`; `reservation` or `outcome`
    kFinish,   // with `pulled` -> `outcome`; with `pulled` false the reservation is given up
    kRelease,  // of `slot`
    kHits,     // `bytes` are hashes of keys that were read
  };

  // Copies the request and points the views of `request` into the copy.
  void SetRequest(const RequestView& from) {
    request = from;
    bytes.assign(from.key);
    bytes.append(from.value);
    request.key = std::string_view(bytes).substr(0, from.key.size());
    request.value = std::string_view(bytes).substr(from.key.size());
  }

  // Keeps what the outcome points to, before the shard's next write.
  void SetOutcome(const Outcome& from) {
    payload.assign(from.payload);
    outcome = from;
    outcome.payload = payload;
  }

  Step step = Step::kExecute;
  bool returning = false;  // on the way home
  bool answered = false;   // the client has had its reply, or is gone
  bool reserved = false;
  bool pulled = false;
  bool unserved = false;            // the owner had no memory for it
  bool ordered = false;             // others may wait for it (write_order.h)
  Forward* next_waiting = nullptr;  // behind this one, while it waits itself
  uint32_t home = 0;
  uint32_t owner = 0;
  ChannelId channel{};
  RequestOrigin origin;
  RequestView request;
  uint64_t hash = 0;
  Slot slot = kEmptySlot;
  Reservation reservation;
  Outcome outcome;
  RequestTiming timing;
  std::string bytes;
  std::string payload;
};

}  // namespace kvd
