// The one place where a completion's status, and an errno of a verbs call, become an absl::Status.
// The raw code stays in the text.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace kvd::verbs {

// What a failed completion says of the work request that `what` names. `vendor_code` is the
// device's own code.
//   Unavailable  the peer does not answer or has gone, the queue was flushed, or the peer's memory
//                may not be read with this key any more (restarted, or revoked): connect again
//   Internal     our own request was wrong
//   DataLoss     the peer's answer was wrong
absl::Status WcStatus(ibv_wc_status status, uint32_t vendor_code, std::string_view what);

// True for a completion that only says that an earlier one failed: never the cause.
inline bool IsFlushed(ibv_wc_status status) { return status == IBV_WC_WR_FLUSH_ERR; }

// What a failed registration of `bytes` says, with the limit that was met and what lifts it.
absl::Status RegistrationStatus(int error_number, std::string_view device, uint64_t bytes);

// The same with the memlock limit given, for tests. `memlock_bytes` of ~0 is none.
absl::Status RegistrationStatusWithLimit(int error_number, std::string_view device, uint64_t bytes,
                                         uint64_t memlock_bytes);

}  // namespace kvd::verbs
