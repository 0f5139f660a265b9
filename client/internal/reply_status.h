// The one translation of a reply's status into absl::Status.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "common/protocol/request_codec.h"

namespace kvd {

// What a reply means to the caller of an operation; the codes are those of kv_client.h's table. `value_bytes`: the
// length of the value of a PUT, for the message.
absl::Status StatusOfReply(const ReplyView& reply, uint64_t value_bytes);

}  // namespace kvd
