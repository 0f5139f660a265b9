// The statistics of a kvd as text: one "name value" a line. Names are stable and carry their unit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

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
  RequestCounter forwarded;  // requests that another poller executed
  RequestCounter sleeps;
};

// Builds the text.
class StatisticsText {
 public:
  void Add(std::string_view name, uint64_t value);
  void Add(std::string_view name, std::string_view value);

  // Adds what all shards say, summed.
  void AddShards(const ShardStats& sum);
  // The same of pollers.
  void AddRequests(const RequestCounters* const* pollers, size_t count);
  // CPU time and memory of this process.
  void AddProcess();

  std::string Take() && { return std::move(text_); }

 private:
  std::string text_;
};

ShardStats operator+(const ShardStats& a, const ShardStats& b);

}  // namespace kvd
