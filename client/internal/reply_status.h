// The one translation of a reply's status into absl::Status.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "client/internal/request_queue.h"
#include "common/protocol/request_codec.h"

namespace kvd {

// What a reply means to the caller of an operation; the codes are those of kv_client.h's table. `value_bytes`: the
// length of the value of a PUT, for the message.
absl::Status StatusOfReply(const ReplyView& reply, uint64_t value_bytes);

// What a request that was given up at its deadline means to the caller. `away`: why there is no session, if there is none.
absl::Status StatusOfWithdrawn(RequestQueue::Progress progress, uint8_t opcode, const absl::Status& away);

}  // namespace kvd
