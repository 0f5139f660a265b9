// The replies to the latest writes of each client, so that one that is sent again takes effect
// once.
//
// A client whose session ended sends its unanswered writes again in the next one, under the same
// ids and flagged as repeats. Both the first try and the repeat come to the owner of the key, so
// each shard's owner keeps its own cache and needs nobody else to tell which of the two came first:
//  - a repeat of what was executed is answered with the reply of then;
//  - what a session sent is not executed any more once the owner has seen a later session of the
//    same client, so a first try that was under way for long cannot come after its repeat.
//
// Why `replies_max`, at least the credits of a session, is enough. Replies of one shard reach the
// client in the order in which they were executed, so while one of them has not arrived none of
// those after it has; and each that has not arrived holds a credit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/layout/frames.h"
#include "server/operations/operations.h"

namespace kvd {

// Who sent a request. Session ids grow; a client has one session at a time.
struct RequestOrigin {
  uint64_t client_id = 0;
  uint64_t session_id = 0;
};

// Used by one poller thread only.
class ReplyCache {
 public:
  explicit ReplyCache(uint32_t replies_max) : replies_max_(replies_max) {}

  enum class Verdict : uint8_t {
    kExecute,     // not executed before
    kAnswered,    // executed before: `outcome` is the reply of then, valid until the next call
    kSuperseded,  // of a session that its client has given up: must not be executed
  };

  // What is kept for one client.
  class Client {
   public:
    // To be asked before a write is executed; and again before the second half of one that takes
    // two.
    Verdict Judge(uint64_t session_id, const RequestHeader& request, Outcome& outcome);

    // What became of a write that Judge let pass. Copies the outcome, but not the value that a
    // TOUCH may bring along: values of every client would be much memory, and a held item is not
    // held for long. A repeat is told that there is none; the client reads the key then.
    void Remember(const Outcome& outcome, uint32_t replies_max);

   private:
    struct Reply {
      ReplyHeader header{};
      std::string payload;
    };

    uint64_t session_id_ = 0;     // the latest seen
    size_t next_ = 0;             // place in the ring
    std::vector<Reply> replies_;  // a ring, once it has replies_max
  };

  // Valid until Sweep. Throws std::bad_alloc.
  Client& ClientOf(uint64_t client_id) {
    if (found_ != nullptr && client_id == found_id_) return *found_;
    found_ = nullptr;
    found_id_ = client_id;
    return *(found_ = &clients_[client_id]);
  }

  // Forgets the clients that are not `known` any more: those will not send anything again.
  void Sweep(const std::function<bool(uint64_t client_id)>& known);

  size_t clients() const { return clients_.size(); }
  uint32_t replies_max() const { return replies_max_; }

 private:
  const uint32_t replies_max_;
  std::unordered_map<uint64_t, Client> clients_;
  // The last one asked for: requests come in runs of one client.
  uint64_t found_id_ = 0;
  Client* found_ = nullptr;  // null: none
};

}  // namespace kvd
