// Times of operations, in memory of a fixed size.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/base/counter.h"

namespace kvd {

// Log-linear as HdrHistogram's: below 256 ns every value has a count of its own, above it each
// power of two is divided into 128, so that what is reported is too large by less than 0.8 %. Up to
// 2^41 ns (36 minutes); what is above counts there, and only its maximum is exact. 36 KiB, all
// zeros at the beginning, so it may lie in fresh shared memory.
//
// One thread writes. Any other may read: a copy, or what was merged, is consistent in itself but
// for its mean and deviation, which may lack the latest values. Nothing here locks or allocates.
class LatencyHistogram {
 public:
  static constexpr int kSubBits = 7;
  static constexpr int kExponentMax = 40;
  static constexpr size_t kCells = static_cast<size_t>(kExponentMax - kSubBits + 2) << kSubBits;

  LatencyHistogram() = default;
  LatencyHistogram(const LatencyHistogram& other) { Merge(other); }
  LatencyHistogram& operator=(const LatencyHistogram& other);

  void Add(int64_t ns) {
    const uint64_t value = ns > 0 ? static_cast<uint64_t>(ns) : 0;
    cells_[CellOf(value)].Add(1);
    sum_.Add(value);
    AddToSquares(static_cast<double>(value) * static_cast<double>(value));
    if (min_plus_1_.get() == 0 || value < min_plus_1_.get() - 1) min_plus_1_.Set(value + 1);
    if (value > max_.get()) max_.Set(value);
    count_.Add(1);
  }

  // Add at a third of its price, where each instruction counts: for values that are read from what
  // this is merged into. That then lacks their least and their deviation; this also their count.
  void Tally(int64_t ns) {
    const uint64_t value = ns > 0 ? static_cast<uint64_t>(ns) : 0;
    cells_[CellOf(value)].Add(1);
    sum_.Add(value);
    if (value > max_.get()) [[unlikely]] max_.Set(value);
  }

  void Merge(const LatencyHistogram& other);
  void Clear();

  uint64_t count() const { return count_.get(); }
  uint64_t min() const { return min_plus_1_.get() == 0 ? 0 : min_plus_1_.get() - 1; }
  uint64_t max() const { return max_.get(); }
  uint64_t sum() const { return sum_.get(); }  // ns
  double Mean() const;
  double StandardDeviation() const;

  // The smallest value that at least `part` (0 to 1) of all values do not exceed, as its cell knows
  // it: rounded up, never beyond max(). 0 if there are none.
  uint64_t Percentile(double part) const;

  // Values that are at most as large as Percentile(part) says.
  uint64_t CountUpTo(uint64_t value) const;

  // The largest value that counts in the same cell.
  static uint64_t RoundedUp(uint64_t value) { return HighestOf(CellOf(value)); }

 private:
  static size_t CellOf(uint64_t value) {
    constexpr uint64_t kLimit = uint64_t{1} << (kExponentMax + 1);
    if (value >= kLimit) value = kLimit - 1;
    const int exponent = 63 - __builtin_clzll(value | (1 << kSubBits));
    const int shift = exponent - kSubBits;
    return (static_cast<size_t>(shift) << kSubBits) + static_cast<size_t>(value >> shift);
  }
  static uint64_t HighestOf(size_t cell);

  void AddToSquares(double square) {
    sum_of_squares_.store(sum_of_squares_.load(std::memory_order_relaxed) + square,
                          std::memory_order_relaxed);
  }

  std::array<Counter, kCells> cells_{};
  Counter count_;
  Counter min_plus_1_;  // 0: there are no values
  Counter max_;
  Counter sum_;
  std::atomic<double> sum_of_squares_{0};
};

}  // namespace kvd
