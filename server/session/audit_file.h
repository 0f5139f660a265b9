// The file of the audit log: which one is good enough, and opening it without waiting for anybody.
#pragma once

#include <sys/stat.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace kvd {

// Opens the file at `path` to append to it, with O_NONBLOCK; makes it, for its owner alone, where
// there is none. "-" is standard error: an invalid descriptor. Does not block, except as the file
// system itself does.
//
// Each error is one line with a remedy, and the file is as it was. FailedPrecondition: it is a
// symbolic link, a directory, of another user than this process's and root, written to by others
// than its owner, or a FIFO that nobody reads. Otherwise as ErrnoStatus makes of open's errno.
absl::StatusOr<UniqueFd> OpenAuditFile(const std::string& path);

// What OpenAuditFile would say, as far as that can be known without making a file. A FIFO is not
// opened, because its reader would see an end: whether it has one only OpenAuditFile finds out.
absl::Status CheckAuditFile(const std::string& path);

// Whether others than this process's user and root could have written what is in the file, or could
// change it; FailedPrecondition, as above.
absl::Status JudgeAuditFile(const std::string& path, const struct stat& facts);

}  // namespace kvd
