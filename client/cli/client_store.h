// The store behind kvd's client library.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/cli/store.h"

namespace kvd::cli {

// Errors: as kvd::Client::Connect.
absl::StatusOr<std::unique_ptr<KeyValueStore>> ConnectClientStore(
    std::string_view target, std::chrono::nanoseconds deadline);

}  // namespace kvd::cli
