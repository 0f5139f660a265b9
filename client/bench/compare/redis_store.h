// A redis, through hiredis.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/bench/kvbench/store.h"

namespace kvd::bench {

// `place`: the path of a Unix socket, or HOST:PORT. InvalidArgument: neither.
absl::StatusOr<StoreMaker> RedisStores(const std::string& place);

}  // namespace kvd::bench
