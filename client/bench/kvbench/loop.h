// The loops in which a client measures.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "client/bench/kvbench/options.h"
#include "client/bench/kvbench/pacer.h"
#include "client/bench/kvbench/shared_run.h"
#include "client/bench/kvbench/store.h"
#include "client/bench/kvbench/traffic.h"

namespace kvd::bench {

// What a loop works on. It runs until `stop` is set, `left` operations are done, or one fails.
struct Loop {
  Loop(const Workload& asked_workload, Store& used_store, Traffic& used_traffic, Pacer with_pacer,
       Tally& into, const std::atomic<bool>& stopped, uint64_t operations)
      : workload(asked_workload),
        store(used_store),
        traffic(used_traffic),
        pacer(std::move(with_pacer)),
        tally(into),
        stop(stopped),
        left(operations) {}

  const Workload& workload;
  Store& store;
  Traffic& traffic;
  Pacer pacer;
  Tally& tally;
  const std::atomic<bool>& stop;
  uint64_t left;
  std::string asked;  // what failed: "get KEY"

  bool GoesOn() const { return left > 0 && !stop.load(std::memory_order_relaxed); }

  // When the next call is due, having waited for it; in a closed loop that is now.
  int64_t Begin();

  // Counts what a call has done. `count` keys; `begin_ns` 0: not timed.
  void Count(Operation operation, uint64_t count, int64_t begin_ns, int64_t end_ns);

  // Judges what a GET returned. DATA_LOSS: not a value of that key.
  absl::Status Judge(const Planned& planned, const absl::Status& status, std::string_view value);

  absl::Status Fail(std::string_view what, const Planned& planned, absl::Status status);

 private:
  uint64_t calls_ = 0;
};

// One operation at a time.
absl::Status RunSingle(Loop& loop);
// A batch at a time, Workload::batch keys each.
absl::Status RunBatches(Loop& loop);
// Workload::depth operations under way.
absl::Status RunStarted(Loop& loop);

}  // namespace kvd::bench
