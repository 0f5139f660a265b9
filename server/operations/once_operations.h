// Operations, each executed once however often its request is sent.
#pragma once

#include <cstdint>
#include <functional>

#include "common/protocol/request_codec.h"
#include "server/operations/operations.h"
#include "server/operations/reply_cache.h"
#include "server/store/shard.h"

namespace kvd {

// As Operations, for requests of which it is known who sent them. A request of a session that its
// client has replaced by a later one is refused with an outcome that ends the session.
class OnceOperations {
 public:
  // The shard outlives this object. `replies_max`: see ReplyCache.
  OnceOperations(Shard& shard, const OperationLimits& limits, uint32_t replies_max)
      : operations_(shard, limits), replies_(replies_max) {}

  Outcome Execute(const RequestOrigin& origin, const RequestView& request, uint64_t hash);
  bool BeginPulled(const RequestOrigin& origin, const RequestView& request, uint64_t hash,
                   Reservation& reservation, Outcome& outcome);
  Outcome FinishPulled(const RequestOrigin& origin, const RequestHeader& request,
                       const Reservation& reservation, bool pulled);

  // For the poller's housekeeping.
  ReplyCache& replies() { return replies_; }

 private:
  // False: `outcome` is the answer, nothing is to be executed.
  static bool MayExecute(ReplyCache::Client& client, const RequestOrigin& origin,
                         const RequestHeader& request, Outcome& outcome);

  Operations operations_;
  ReplyCache replies_;
};

}  // namespace kvd
