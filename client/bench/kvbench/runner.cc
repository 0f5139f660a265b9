#include "client/bench/kvbench/runner.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "client/bench/kvbench/client_run.h"
#include "client/bench/kvbench/counters.h"
#include "client/bench/kvbench/crew.h"
#include "common/base/clock.h"

namespace kvd::bench {
namespace {

int64_t Now() { return RealClock::Get().NowMonotonicNs(); }

// Leads the crew through a run, phase by phase.
class Leader {
 public:
  Leader(const Workload& workload, const StoreMaker& make_store, const RunHooks& hooks, Crew& crew,
         RunResult& result)
      : workload_(workload), make_store_(make_store), hooks_(hooks), crew_(crew), result_(result) {}

  void Lead() {
    // Connects before the clients do, so that a server that is not there is complained of once.
    absl::StatusOr<std::unique_ptr<Store>> control = make_store_(kControl);
    if (!control.ok()) {
      result_.failure = {"connect", control.status(), false};
      return;
    }
    crew_.control().items.Begin(workload_.keys);
    if (!Through(Phase::kConnect, 0)) return;
    if (workload_.load) {
      const int64_t begin_ns = Now();
      if (!Through(Phase::kLoad, 0)) return;
      result_.load_seconds = static_cast<double>(Now() - begin_ns) / 1e9;
    }
    if (workload_.warm_up.count() > 0 && !Through(Phase::kWarmUp, workload_.warm_up.count()))
      return;
    Measure(**control);
  }

 private:
  void Measure(Store& control) {
    if (!TakeStatistics(control, result_.server_before)) return;
    Through(Phase::kMeasure, workload_.duration.count());
    AddUp();
    if (result_.failure.has_value() || !TakeStatistics(control, result_.server_after)) return;
    const int64_t before_us = control.ServerCpuUs(result_.server_before);
    const int64_t after_us = control.ServerCpuUs(result_.server_after);
    if (before_us >= 0 && after_us >= 0) result_.server_cpu_us = after_us - before_us;
  }

  bool TakeStatistics(Store& control, Store::Statistics& into) {
    absl::StatusOr<Store::Statistics> statistics = control.Stats();
    if (statistics.ok()) {
      into = *std::move(statistics);
      return true;
    }
    result_.failure = {"statistics of the server", statistics.status(), false};
    return false;
  }

  // Has all clients do the phase, and stops them after `limit_ns` unless that is 0. False: the run
  // is over.
  bool Through(Phase phase, int64_t limit_ns) {
    RunControl& control = crew_.control();
    control.stop.store(false);
    control.phase.store(phase, std::memory_order_release);
    const int64_t begin_ns = Now();
    while (!AllFinished(phase)) {
      if (hooks_.interrupted()) result_.interrupted = true;
      if (phase == Phase::kLoad && hooks_.loading) hooks_.loading(control.loaded.load());
      const int64_t left_ns = begin_ns + limit_ns - Now();
      if (result_.interrupted || result_.failure.has_value() || (limit_ns > 0 && left_ns <= 0)) {
        control.stop.store(true);
      }
      const int64_t nap_ns =
          limit_ns > 0 && left_ns > 0 ? std::min<int64_t>(left_ns, 2'000'000) : 2'000'000;
      std::this_thread::sleep_for(std::chrono::nanoseconds(nap_ns));
    }
    return !result_.interrupted && !result_.failure.has_value();
  }

  // Whether every client that has not failed is through. Notes the first failure.
  bool AllFinished(Phase phase) {
    crew_.NoticeDead();
    bool all = true;
    for (size_t i = 0; i < crew_.size(); ++i) {
      const ClientSlot& slot = crew_.slot(i);
      if (slot.failed.load(std::memory_order_acquire)) {
        if (!result_.failure.has_value())
          result_.failure = {slot.asked.data(), slot.status(), slot.died};
      } else if (slot.finished.load(std::memory_order_acquire) < phase) {
        all = false;
      }
    }
    return all;
  }

  void AddUp() {
    Tally& sum = result_.sum;
    for (size_t i = 0; i < crew_.size(); ++i) {
      const Tally& tally = crew_.slot(i).tally;
      if (tally.end_ns == 0) continue;  // its process died
      sum.begin_ns = sum.begin_ns == 0 ? tally.begin_ns : std::min(sum.begin_ns, tally.begin_ns);
      sum.end_ns = std::max(sum.end_ns, tally.end_ns);
      for (size_t operation = 0; operation < kOperations; ++operation) {
        sum.times[operation].Merge(tally.times[operation]);
        sum.operations[operation] += tally.operations[operation];
        result_.measured = result_.measured || tally.operations[operation] > 0;
      }
      sum.bytes_read += tally.bytes_read;
      sum.bytes_written += tally.bytes_written;
      sum.not_found += tally.not_found;
      sum.misses += tally.misses;
      sum.conflicts += tally.conflicts;
      sum.cpu_us += tally.cpu_us;
      sum.behind_ns = std::max(sum.behind_ns, tally.behind_ns);
      AddTo(sum.counters, tally.counters);
    }
    result_.seconds = static_cast<double>(sum.end_ns - sum.begin_ns) / 1e9;
  }

  const Workload& workload_;
  const StoreMaker& make_store_;
  const RunHooks& hooks_;
  Crew& crew_;
  RunResult& result_;
};

}  // namespace

RunResult Run(const Workload& workload, const StoreMaker& make_store, const RunHooks& hooks) {
  RunResult result;
  absl::StatusOr<Crew> crew =
      Crew::Start({.clients = workload.clients, .processes = workload.processes},
                  [&](size_t index, RunControl& control, ClientSlot& slot) {
                    RunClient(workload, make_store, index, control, slot);
                  });
  if (!crew.ok()) {
    result.failure = {"clients", crew.status(), true};
    return result;
  }
  Leader(workload, make_store, hooks, *crew, result).Lead();
  return result;
}

}  // namespace kvd::bench
