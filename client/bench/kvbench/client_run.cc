#include "client/bench/kvbench/client_run.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "client/bench/kvbench/counters.h"
#include "client/bench/kvbench/loop.h"
#include "client/bench/kvbench/traffic.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace kvd::bench {
namespace {

constexpr size_t kLoadBatch = 64;               // PUTs under way
constexpr size_t kLoadBytes = size_t{4} << 20;  // and bytes, unless one value is longer

int64_t ThreadCpuUs() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * int64_t{1'000'000} +
         usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

class ClientRun {
 public:
  ClientRun(const Workload& workload, const StoreMaker& make_store, size_t index,
            RunControl& control, ClientSlot& slot)
      : workload_(workload),
        make_store_(make_store),
        index_(index),
        control_(control),
        slot_(slot) {}

  void Run() {
    ::prctl(PR_SET_TIMERSLACK, 1);  // an open loop's sleeps end when they should
    for (Phase phase = Await(Phase::kConnect); phase != Phase::kEnd;) {
      if (const absl::Status status = Do(phase); !status.ok()) {
        slot_.Fail(asked_, status);
        return;
      }
      slot_.finished.store(phase, std::memory_order_release);
      phase = Await(static_cast<Phase>(static_cast<uint32_t>(phase) + 1));
    }
  }

 private:
  // Until the run is that far, or at its end.
  Phase Await(Phase phase) const {
    while (true) {
      const Phase now = control_.phase.load(std::memory_order_acquire);
      if (now >= phase) return now;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  absl::Status Do(Phase phase) {
    switch (phase) {
      case Phase::kConnect:
        return Connect();
      case Phase::kLoad:
        return Load();
      case Phase::kWarmUp:
        return Repeat(UINT64_MAX);
      case Phase::kMeasure:
        return Measure();
      case Phase::kNone:
      case Phase::kEnd:
        break;
    }
    return absl::OkStatus();
  }

  absl::Status Connect() {
    asked_ = "connect";
    KVD_ASSIGN_OR_RETURN(store_, make_store_(index_));
    traffic_ = std::make_unique<Traffic>(workload_, control_.items, index_);
    if (workload_.depth > 1 && !store_->CanStart()) {
      return absl::UnimplementedError("this store has one operation under way; leave out --depth");
    }
    return absl::OkStatus();
  }

  // Every workload_.clients-th item.
  absl::Status Load() {
    asked_ = "load";
    const size_t value_max = workload_.value_sizes.max();
    const size_t batch = std::clamp<size_t>(kLoadBytes / value_max, 1, kLoadBatch);
    std::vector<std::string> keys(batch, std::string(workload_.key_size, '\0'));
    std::vector<char> values(batch * value_max);
    std::vector<PutRequest> puts;
    for (uint64_t key = index_; key < workload_.keys;) {
      puts.clear();
      char* at = values.data();
      for (; key < workload_.keys && puts.size() < batch; key += workload_.clients) {
        std::string& text = keys[puts.size()];
        traffic_->keys().Write(key, text.data());
        const size_t size = traffic_->WriteValue(key, at);
        puts.push_back({text, {at, size}});
        at += size;
      }
      KVD_RETURN_IF_ERROR(store_->MultiPut(puts));
      control_.loaded.fetch_add(puts.size(), std::memory_order_relaxed);
      if (control_.stop.load(std::memory_order_relaxed)) break;
    }
    return absl::OkStatus();
  }

  absl::Status Measure() {
    const uint64_t share = workload_.operations / workload_.clients +
                           (index_ < workload_.operations % workload_.clients ? 1 : 0);
    slot_.tally = Tally();
    const ClientCounters before = store_->counters();
    const int64_t cpu_us = ThreadCpuUs();
    slot_.tally.begin_ns = RealClock::Get().NowMonotonicNs();
    const absl::Status status = Repeat(workload_.operations > 0 ? share : UINT64_MAX);
    slot_.tally.end_ns = RealClock::Get().NowMonotonicNs();
    slot_.tally.cpu_us = ThreadCpuUs() - cpu_us;
    slot_.tally.counters = Difference(store_->counters(), before);
    return status;
  }

  absl::Status Repeat(uint64_t operations) {
    const double clients = static_cast<double>(workload_.clients);
    const double calls = workload_.rate / clients / static_cast<double>(workload_.batch);
    Pacer pacer(calls, workload_.arrivals, RealClock::Get().NowMonotonicNs(),
                static_cast<double>(index_) / clients, workload_.seed + index_);
    Loop loop(workload_, *store_, *traffic_, std::move(pacer), slot_.tally, control_.stop,
              operations);
    const absl::Status status = workload_.batch > 1   ? RunBatches(loop)
                                : workload_.depth > 1 ? RunStarted(loop)
                                                      : RunSingle(loop);
    asked_ = loop.asked;
    if (loop.pacer.open()) {
      slot_.tally.behind_ns =
          std::max<int64_t>(0, RealClock::Get().NowMonotonicNs() - loop.pacer.due_ns());
    }
    return status;
  }

  const Workload& workload_;
  const StoreMaker& make_store_;
  const size_t index_;
  RunControl& control_;
  ClientSlot& slot_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Traffic> traffic_;
  std::string asked_;
};

}  // namespace

void RunClient(const Workload& workload, const StoreMaker& make_store, size_t index,
               RunControl& control, ClientSlot& slot) {
  ClientRun(workload, make_store, index, control, slot).Run();
}

}  // namespace kvd::bench
