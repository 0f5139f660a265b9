// What clients of a run, threads or processes, share with whoever started them. Lies in memory that
// processes share, where all zeros is the state at the beginning.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "absl/status/status.h"
#include "client/bench/kvbench/acknowledged_counter.h"
#include "client/bench/kvbench/mix.h"
#include "client/kv_client.h"
#include "common/base/latency_histogram.h"
#include "common/base/string_view.h"

namespace kvd::bench {

enum class Phase : uint32_t { kNone, kConnect, kLoad, kWarmUp, kMeasure, kEnd };

struct RunControl {
  std::atomic<Phase> phase;
  std::atomic<bool> stop;        // ends the loops of kWarmUp and kMeasure, and kLoad early
  std::atomic<uint64_t> loaded;  // items, by all clients
  AcknowledgedCounter items;
};

// What one client has done since it began to measure. Operations are counted by the key, batches as
// well.
struct Tally {
  std::array<LatencyHistogram, kOperations> times;
  std::array<uint64_t, kOperations> operations{};
  uint64_t bytes_read = 0;  // of values
  uint64_t bytes_written = 0;
  uint64_t not_found = 0;  // GETs of keys that should have been there
  uint64_t misses = 0;     // GETs of keys that should not, and were not
  uint64_t conflicts = 0;  // conditions that did not hold; tried again
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t behind_ns = 0;  // open loop: how late its next operation was at the end
  int64_t cpu_us = 0;
  ClientCounters counters;
};

// Of one client; it alone writes, and the others read what is before `finished` once that says so
// (release, acquire).
struct ClientSlot {
  std::atomic<Phase> finished;
  std::atomic<bool> failed;
  bool died;  // its process, as its leader found
  absl::StatusCode code;
  std::array<char, 128> asked;
  std::array<char, 1024> wrong;
  Tally tally;

  void Fail(std::string_view what, const absl::Status& status) {
    code = status.code();
    Copy(what, asked);
    Copy(ToStd(status.message()), wrong);
    failed.store(true, std::memory_order_release);
  }

  // For whoever has seen `failed`.
  absl::Status status() const { return absl::Status(code, wrong.data()); }

 private:
  template <size_t N>
  static void Copy(std::string_view text, std::array<char, N>& into) {
    const size_t size = std::min(text.size(), N - 1);
    std::memcpy(into.data(), text.data(), size);
    into[size] = '\0';
  }
};

static_assert(std::atomic<Phase>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

}  // namespace kvd::bench
