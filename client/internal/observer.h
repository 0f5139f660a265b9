// What a client object knows of itself and tells any thread: its counters, how long its operations
// took, and what was wrong with its connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "client/kv_client.h"
#include "common/base/counter.h"
#include "common/base/latency_histogram.h"
#include "common/base/mapped_memory.h"

namespace kvd {

// Which of many operations are looked at: by chance, so that no rhythm of an application escapes or
// dominates. The distance from one to the next is drawn evenly from 1 to twice the mean less one,
// so each has the same chance in the long run, and those between cost one decrement.
class Sampler {
 public:
  explicit Sampler(uint32_t mean) : mean_(mean), left_(Draw()) {}

  // Counts one operation. True: it is to be looked at.
  bool Due() {
    if (--left_ != 0) [[likely]]
      return false;
    left_ = Draw();
    return true;
  }

 private:
  uint32_t Draw() {
    // A linear congruential generator (Numerical Recipes), whose high bits are the good ones.
    dice_ = dice_ * 1664525 + 1013904223;
    return 1 + static_cast<uint32_t>((uint64_t{dice_} * (2 * uint64_t{mean_} - 1)) >> 32);
  }

  const uint32_t mean_;  // 1 to 2^31
  uint32_t dice_ = 1;
  uint32_t left_;
};

class Observer {
 public:
  enum class Kind : uint8_t {
    kKnownGet,
    kColdGet,
    kMissedGet,
    kMultiGet,
    kWrite,
    kMultiWrite,
    kRequest,
  };
  static constexpr size_t kKinds = 7;
  // A write costs more than a GET, and there are fewer of them: more of them can be looked at.
  static constexpr uint32_t kWritesPerGet = 2;
  static constexpr uint32_t kSamplingMax = uint32_t{1} << 20;
  // So often a look is taken for the counters' sake where nothing is timed.
  static constexpr uint32_t kSamplingForCounters = 64;
  static constexpr int64_t kSamplingsPerTell = 4;

  explicit Observer(const ClientOptions& options);
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  // --- The client's own thread ---

  bool times() const { return times_of_ != nullptr; }
  // Counts an operation that begins. True: it is one of those that are timed.
  bool GetIsDue() { return gets_.Due() && (due_ = true); }
  // Whether GetIsDue has said so since the last call.
  bool TakeDue() { return std::exchange(due_, false); }
  bool WriteIsDue() { return writes_.Due(); }
  // Counts one that was timed. True: the counters are to be told, which costs more than the time.
  bool TellIsDue(bool is_write) {
    until_tell_ -= is_write ? write_mean_ : get_mean_;
    if (until_tell_ > 0) return false;
    until_tell_ = tell_each_;
    return true;
  }

  // Does nothing unless times().
  void Add(Kind kind, int64_t ns) {
    if (times()) times_of_[static_cast<size_t>(kind)].Add(ns);
  }
  void Tell(const ClientCounters& counters);

  // Something was wrong with the connection to `target`. Calls the client's callback for the first
  // one since the session began.
  void ConnectionFailed(std::string_view target, const absl::Status& cause);
  void SessionBegins() { reported_ = false; }

  // --- Any thread ---

  ClientObservation Read() const;

 private:
  static constexpr size_t kCounters = sizeof(ClientCounters) / sizeof(uint64_t);
  static_assert(kCounters * sizeof(uint64_t) == sizeof(ClientCounters));

  LatencySummary Summary(Kind kind) const;

  Sampler gets_;
  Sampler writes_;
  bool due_ = false;
  const int64_t get_mean_;
  const int64_t write_mean_;
  const int64_t tell_each_;  // operations
  int64_t until_tell_ = 0;
  bool reported_ = false;
  const std::function<void(const ConnectionError&)> on_error_;
  MappedMemory times_memory_;
  LatencyHistogram* const times_of_;  // by Kind; null: nothing is timed

  std::array<Counter, kCounters> counters_;
  Counter errors_;
  mutable std::mutex mutex_;
  ConnectionError first_;  // of the last connection that had one
};

// What can be done about it, for people: what the cause's own text says behind "; ", or else what
// its code leads one to.
std::string RemedyOf(const absl::Status& cause);

}  // namespace kvd
