// A run: clients started, led through their phases, and added up.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/bench/kvbench/options.h"
#include "client/bench/kvbench/shared_run.h"
#include "client/bench/kvbench/store.h"

namespace kvd::bench {

struct RunFailure {
  std::string asked;
  absl::Status status;
  bool is_local =
      false;  // nothing to do with the store: memory, threads, processes of this machine
};

struct RunResult {
  Tally sum;                // of all clients; begin_ns and end_ns: of the first and the last
  double seconds = 0;       // from its beginning to its end
  double load_seconds = 0;  // 0: nothing was loaded
  bool measured = false;    // there is something in `sum`
  bool interrupted = false;
  std::optional<RunFailure> failure;  // what was measured before it is in `sum`
  Store::Statistics server_before;    // at the beginning and the end of the measurement
  Store::Statistics server_after;
  int64_t server_cpu_us = -1;  // between these; below 0: unknown
};

struct RunHooks {
  std::function<bool()> interrupted;
  // Now and then while items are loaded, with how many there are.
  std::function<void(uint64_t)> loading;
};

// Blocks until the run is over. Forks if the workload asks for processes: no other thread may be
// running then.
RunResult Run(const Workload& workload, const StoreMaker& make_store, const RunHooks& hooks);

}  // namespace kvd::bench
