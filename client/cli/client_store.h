// The store behind kvd's client library.
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/cli/store.h"

namespace kvd::cli {

// Errors: as kvd::Client::Connect; InvalidArgument for a GID index where rdma_cm is to choose.
absl::StatusOr<std::unique_ptr<KeyValueStore>> ConnectClientStore(std::string_view target,
                                                                  const ConnectOptions& options);

}  // namespace kvd::cli
