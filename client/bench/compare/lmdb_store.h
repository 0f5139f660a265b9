// An LMDB in this process.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/bench/kvbench/store.h"

namespace kvd::bench {

// In an existing directory, one environment for all clients; without syncing to disk, since none of
// the others does either. Errors: what LMDB says.
absl::StatusOr<StoreMaker> LmdbStores(const std::string& directory);

}  // namespace kvd::bench
