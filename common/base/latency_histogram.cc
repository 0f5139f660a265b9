#include "common/base/latency_histogram.h"

#include <algorithm>
#include <cmath>

namespace kvd {

// Cells 0 to 2^(kSubBits+1) - 1 hold their own number; then every 2^kSubBits of them are twice as
// wide.
uint64_t LatencyHistogram::HighestOf(size_t cell) {
  if (cell < size_t{2} << kSubBits) return cell;
  const size_t shift = (cell >> kSubBits) - 1;
  const uint64_t mantissa = cell - (shift << kSubBits);
  return ((mantissa + 1) << shift) - 1;
}

LatencyHistogram& LatencyHistogram::operator=(const LatencyHistogram& other) {
  if (this == &other) return *this;
  Clear();
  Merge(other);
  return *this;
}

// How many there are is what the cells say: `other` may be written meanwhile.
void LatencyHistogram::Merge(const LatencyHistogram& other) {
  uint64_t added = 0;
  for (size_t i = 0; i < kCells; ++i) {
    const uint64_t n = other.cells_[i].get();
    if (n == 0) continue;
    cells_[i].Add(n);
    added += n;
  }
  if (added == 0) return;
  count_.Add(added);
  sum_.Add(other.sum_.get());
  AddToSquares(other.sum_of_squares_.load(std::memory_order_relaxed));
  const uint64_t smallest = other.min_plus_1_.get();
  if (smallest != 0 && (min_plus_1_.get() == 0 || smallest < min_plus_1_.get())) {
    min_plus_1_.Set(smallest);
  }
  max_.Set(std::max(max_.get(), other.max_.get()));
}

void LatencyHistogram::Clear() {
  for (Counter& cell : cells_) cell.Set(0);
  for (Counter* const number : {&count_, &min_plus_1_, &max_, &sum_}) number->Set(0);
  sum_of_squares_.store(0, std::memory_order_relaxed);
}

double LatencyHistogram::Mean() const {
  return count() == 0 ? 0 : static_cast<double>(sum()) / static_cast<double>(count());
}

double LatencyHistogram::StandardDeviation() const {
  if (count() == 0) return 0;
  const double mean = Mean();
  const double squares = sum_of_squares_.load(std::memory_order_relaxed);
  return std::sqrt(std::max(0.0, squares / static_cast<double>(count()) - mean * mean));
}

uint64_t LatencyHistogram::Percentile(double part) const {
  const uint64_t count = this->count();
  if (count == 0) return 0;
  // Less than half a value is rounding in the product, not a value more.
  const auto wanted = static_cast<uint64_t>(std::ceil(part * static_cast<double>(count) - 1e-6));
  const uint64_t rank = std::clamp<uint64_t>(wanted, 1, count);
  uint64_t seen = 0;
  for (size_t i = 0; i < kCells; ++i) {
    seen += cells_[i].get();
    // The last cell's own limit says nothing about what was beyond it.
    if (seen >= rank) return i + 1 == kCells ? max() : std::min(HighestOf(i), max());
  }
  return max();
}

uint64_t LatencyHistogram::CountUpTo(uint64_t value) const {
  uint64_t seen = 0;
  const size_t last = CellOf(value);
  for (size_t i = 0; i <= last; ++i) seen += cells_[i].get();
  return seen;
}

}  // namespace kvd
