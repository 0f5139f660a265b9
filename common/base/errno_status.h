// The one place where errno becomes an absl::Status.
#pragma once

#include <cerrno>
#include <string_view>

#include "absl/status/status.h"

namespace kvd {

// "open /x: Permission denied (errno 13)" for ErrnoStatus(EACCES, "open /x"). `context` names the
// call and its arguments. Never OK: an `error_number` of 0 or less becomes UNKNOWN.
//
// The code is absl::ErrnoToStatusCode's: EACCES, EPERM -> PERMISSION_DENIED; ENOENT -> NOT_FOUND;
// ENOMEM, EMFILE, ENOSPC -> RESOURCE_EXHAUSTED; ECONNREFUSED, ECONNRESET, EAGAIN -> UNAVAILABLE;
// ETIMEDOUT -> DEADLINE_EXCEEDED; ENOSYS -> UNIMPLEMENTED; EINVAL -> INVALID_ARGUMENT.
absl::Status ErrnoStatus(int error_number, std::string_view context);

// The same of the calling thread's errno, so call it right after what failed.
inline absl::Status ErrnoStatus(std::string_view context) { return ErrnoStatus(errno, context); }

}  // namespace kvd
