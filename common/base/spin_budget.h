// How long to spin for something before sleeping, learned from whether spinning paid.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kvd {

// Where what is waited for comes while one spins, a sleep is saved; where it does not, spinning only
// keeps the processor from whoever would bring it, most of all if that one has to run on the same
// core. So a spin in vain halves the next one and one that paid doubles it.
//
// Used by one thread; never blocks.
class SpinBudget {
 public:
  static constexpr int64_t kMinNs = 1'000;

  // `max_ns`: about what a sleep and a wake-up cost; 0: spinning never pays.
  explicit SpinBudget(int64_t max_ns) : max_ns_(max_ns), ns_(max_ns) {}

  int64_t ns() const { return ns_; }
  void Paid() { ns_ = std::min(max_ns_, ns_ * 2); }
  void DidNotPay() { ns_ = std::min(max_ns_, std::max(kMinNs, ns_ / 2)); }

 private:
  const int64_t max_ns_;
  int64_t ns_;
};

}  // namespace kvd
