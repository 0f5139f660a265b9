// When operations should begin.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>

#include "client/bench/kvbench/options.h"
#include "common/base/random.h"

namespace kvd::bench {

// The schedule of one client in an open loop, fixed before it begins: an operation that begins late
// because those before it took long is timed from when it was due, so that no wait is left out of
// the account. Not a schedule (open() is false) in a closed loop.
class Pacer {
 public:
  // `calls_per_second` of this client; 0: closed loop. `begin_ns`: when the run begins. `phase`, 0
  // to 1: which part of an interval this client begins later, so that not all do so at once.
  Pacer(double calls_per_second, Arrivals arrivals, int64_t begin_ns, double phase, uint64_t seed)
      : interval_ns_(calls_per_second > 0 ? 1e9 / calls_per_second : 0),
        arrivals_(arrivals),
        next_ns_(static_cast<double>(begin_ns) + interval_ns_ * phase),
        random_(seed) {}

  bool open() const { return interval_ns_ > 0; }

  // When the next operation is due.
  int64_t due_ns() const { return static_cast<int64_t>(next_ns_); }

  void Advance() {
    const bool evenly = arrivals_ == Arrivals::kConstant;
    next_ns_ += evenly ? interval_ns_ : -std::log(1 - random_.NextDouble()) * interval_ns_;
  }

 private:
  double interval_ns_;
  Arrivals arrivals_;
  double next_ns_;
  Random random_;
};

// Sleeps, and for the last stretch spins, until then or until `stop` is set.
void WaitUntil(int64_t monotonic_ns, const std::atomic<bool>& stop);

}  // namespace kvd::bench
