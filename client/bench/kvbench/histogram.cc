#include "client/bench/kvbench/histogram.h"

#include <algorithm>
#include <cmath>

namespace kvd::bench {

// Cells 0 to 2^(kSubBits+1) - 1 hold their own number; then every 2^kSubBits of them are twice as
// wide.
uint64_t Histogram::HighestOf(size_t cell) {
  if (cell < size_t{2} << kSubBits) return cell;
  const size_t shift = (cell >> kSubBits) - 1;
  const uint64_t mantissa = cell - (shift << kSubBits);
  return ((mantissa + 1) << shift) - 1;
}

void Histogram::Merge(const Histogram& other) {
  if (other.count_ == 0) return;
  min_plus_1_ = count_ == 0 ? other.min_plus_1_ : std::min(min_plus_1_, other.min_plus_1_);
  max_ = std::max(max_, other.max_);
  count_ += other.count_;
  sum_ += other.sum_;
  sum_of_squares_ += other.sum_of_squares_;
  for (size_t i = 0; i < kCells; ++i) cells_[i] += other.cells_[i];
}

double Histogram::Mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

double Histogram::StandardDeviation() const {
  if (count_ == 0) return 0;
  const double mean = Mean();
  return std::sqrt(std::max(0.0, sum_of_squares_ / static_cast<double>(count_) - mean * mean));
}

uint64_t Histogram::Percentile(double part) const {
  if (count_ == 0) return 0;
  // Less than half a value is rounding in the product, not a value more.
  const auto wanted = static_cast<uint64_t>(std::ceil(part * static_cast<double>(count_) - 1e-6));
  const uint64_t rank = std::clamp<uint64_t>(wanted, 1, count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < kCells; ++i) {
    seen += cells_[i];
    // The last cell's own limit says nothing about what was beyond it.
    if (seen >= rank) return i + 1 == kCells ? max_ : std::min(HighestOf(i), max_);
  }
  return max_;
}

uint64_t Histogram::CountUpTo(uint64_t value) const {
  uint64_t seen = 0;
  const size_t last = CellOf(value);
  for (size_t i = 0; i <= last; ++i) seen += cells_[i];
  return seen;
}

}  // namespace kvd::bench
