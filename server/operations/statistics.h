// What shards, pollers and the process have to say in the statistics. Names are stable and carry
// their unit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/statistic_list.h"
#include "common/layout/frames.h"
#include "server/store/shard.h"

namespace kvd {

// A number that one thread writes and any thread reads. Relaxed: nothing else hangs on it.
class RequestCounter {
 public:
  void Add(uint64_t n) { value_.store(get() + n, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// What one poller counts. It alone writes; anybody reads.
struct RequestCounters {
  static constexpr size_t kOpcodes = kOpcodeLast + 1;
  RequestCounter requests[kOpcodes];  // by Opcode; [0] is not used
  RequestCounter malformed;           // frames that broke the format
  RequestCounter pulled_bytes;
  RequestCounter reported_reads;  // of HITS: keys that clients say they read
  RequestCounter forwarded;       // requests that another poller executed
  RequestCounter sleeps;
};

// "put": as a label of metrics says it.
std::string_view OperationName(Opcode opcode);

// What all shards say, summed.
void AddShards(const ShardStats& sum, StatisticList& list);
// The same of pollers.
void AddRequests(std::span<const RequestCounters* const> pollers, StatisticList& list);
// CPU time and memory of this process.
void AddProcess(StatisticList& list);

ShardStats operator+(const ShardStats& a, const ShardStats& b);

}  // namespace kvd
