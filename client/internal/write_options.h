// What WriteOptions say, as fields of a request.
#pragma once

#include "absl/status/status.h"
#include "client/kv_client.h"
#include "common/base/clock.h"
#include "common/layout/frames.h"

namespace kvd {

// Options that an operation does not have are InvalidArgument rather than ignored.
struct WriteOptionsAllowed {
  bool if_absent = false;
  bool if_present = false;
  bool if_version = false;
  bool expiry = false;
  bool user_flags = false;
};
WriteOptionsAllowed AllowedFor(Opcode opcode);

// Sets opcode, flags, expiry, user flags and version to compare in `header`. A time to live counts from the latest that the
// server's clock may say by now, so that no item lives shorter than that. InvalidArgument names the option.
absl::Status FillHeader(Opcode opcode, const WriteOptions& options, const Clock& server_clock, int64_t clock_error_us,
                        RequestHeader& header);

}  // namespace kvd
