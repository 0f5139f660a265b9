// What shards, pollers and the process have to say in the statistics. Names are stable and carry
// their unit.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/base/statistic_list.h"
#include "common/layout/frames.h"
#include "common/layout/reported_counts.h"
#include "server/store/shard.h"

namespace kvd {

// A number that one thread writes and any thread reads. Relaxed: nothing else hangs on it.
class RequestCounter {
 public:
  void Add(uint64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  // To `n`, if it is less.
  void Raise(uint64_t n) {
    if (n > get()) value_.store(n, std::memory_order_relaxed);
  }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// What clients say of their reading, of all sessions so far: no sum overflows, whatever they say.
class ReportedSums {
 public:
  void Add(const ReportedCounts& counts);
  ReportedCounts get() const;

 private:
  std::array<RequestCounter, kReportedCounts> sums_;
};
ReportedCounts operator+(const ReportedCounts& a, const ReportedCounts& b);

// What one poller counts. It alone writes; anybody reads.
struct RequestCounters {
  static constexpr size_t kOpcodes = kOpcodeLast + 1;
  RequestCounter requests[kOpcodes];  // by Opcode; [0] is not used
  RequestCounter malformed;           // frames that broke the format
  RequestCounter pulled_bytes;
  RequestCounter sampled_hits;  // of HITS: keys that clients say they read
  ReportedSums reported;        // of HITS as well
  RequestCounter disbelieved_reports;
  RequestCounter forwarded;  // requests that another poller executed
  RequestCounter sleeps;
  // Of times in which it was awake and had no processor.
  RequestCounter stalls;
  RequestCounter stalled_ns;
  RequestCounter longest_stall_ns;
};

// "put": as a label of metrics says it.
std::string_view OperationName(Opcode opcode);

// What the kernel says of this process's memory; 0 where it does not. `root` stands before the
// path, for tests.
struct LockedMemory {
  uint64_t locked_bytes = 0;
  uint64_t pinned_bytes = 0;     // by devices: a region that is registered for RDMA
  uint64_t hugepages_bytes = 0;  // of the kernel's pool, that are there and not only promised
};
LockedMemory ReadLockedMemory(const std::string& root = "");

// What all shards say, summed.
void AddShards(const ShardStats& sum, StatisticList& list);
// The same of pollers.
void AddRequests(std::span<const RequestCounters* const> pollers, StatisticList& list);
// How the pollers came by their processors; the first is poller 0.
struct PollerProcessor {
  const RequestCounters* counters = nullptr;
  uint64_t queued_ns = 0;  // ReadQueuedNs
};
void AddStalls(std::span<const PollerProcessor> pollers, StatisticList& list);
// How long a thread of this process has been ready to run and waited for a processor; 0 where the
// kernel does not say. `root` stands before the path, for tests.
uint64_t ReadQueuedNs(int thread_id, const std::string& root = "");
// CPU time and memory of this process.
void AddProcess(StatisticList& list);

ShardStats operator+(const ShardStats& a, const ShardStats& b);

}  // namespace kvd
