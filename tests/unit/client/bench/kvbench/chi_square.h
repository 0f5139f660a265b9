// Whether counts are those of a distribution.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace kvd::test {

struct ChiSquare {
  double statistic = 0;
  double limit = 0;  // exceeded by chance once in 10,000 seeds
};

// `expected` are weights, every one of them above 0; the more counts the better, and 5 expected in
// each place at least.
inline ChiSquare ChiSquareOf(const std::vector<uint64_t>& counts,
                             const std::vector<double>& expected) {
  const double total =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
  const double weights = std::accumulate(expected.begin(), expected.end(), 0.0);
  ChiSquare result;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double wanted = expected[i] / weights * total;
    const double off = static_cast<double>(counts[i]) - wanted;
    result.statistic += off * off / wanted;
  }
  // E. B. Wilson and M. M. Hilferty, "The distribution of chi-square", 1931; 3.719: the normal
  // distribution's 1 - 1/10,000.
  const double freedom = static_cast<double>(counts.size() - 1);
  const double part = 2 / (9 * freedom);
  result.limit = freedom * std::pow(1 - part + 3.719 * std::sqrt(part), 3);
  return result;
}

}  // namespace kvd::test
