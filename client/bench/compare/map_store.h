// absl::flat_hash_map in this process: what no store can be much faster than.
#pragma once

#include "client/bench/kvbench/store.h"

namespace kvd::bench {

// One map for all clients. With more than one, behind a lock that readers share.
StoreMaker MapStores(size_t clients);

}  // namespace kvd::bench
