// A file that a command reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace kvd::cli {

// Errors: errno's, naming the path.
absl::StatusOr<UniqueFd> OpenForReading(const std::string& path);

// Its length where that is known beforehand, as it is of a regular file.
std::optional<uint64_t> KnownBytes(int fd);

}  // namespace kvd::cli
