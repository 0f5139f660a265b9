// The one translation of a reply's status into absl::Status.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "client/internal/request_queue.h"
#include "common/protocol/request_codec.h"

namespace kvd {

// What the messages tell besides the reply.
struct ReplyContext {
  uint64_t value_bytes = 0;    // of the value of a PUT
  bool server_evicts = false;  // where it finds no room
};

// What a reply means to the caller of an operation; the codes are those of kv_client.h's table.
absl::Status StatusOfReply(const ReplyView& reply, const ReplyContext& context);

// What a request that was given up at its deadline means to the caller. `away`: why there is no
// session, if there is none.
absl::Status StatusOfWithdrawn(RequestQueue::Progress progress, uint8_t opcode,
                               const absl::Status& away);

}  // namespace kvd
