// One client from its connection to its end.
#pragma once

#include <cstddef>

#include "client/bench/kvbench/options.h"
#include "client/bench/kvbench/shared_run.h"
#include "client/bench/kvbench/store.h"

namespace kvd::bench {

// Runs client number `index` through the phases that `control` asks for, until kEnd or until
// something fails; its slot says which. Blocks all the time: for a thread or a process of its own.
void RunClient(const Workload& workload, const StoreMaker& make_store, size_t index,
               RunControl& control, ClientSlot& slot);

}  // namespace kvd::bench
