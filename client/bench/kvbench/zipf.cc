#include "client/bench/kvbench/zipf.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"

namespace kvd::bench {
namespace {

// expm1(x) / x and log1p(x) / x, which have a value at 0 too: so exponents at and near 1 are no
// special case.
double ExpM1Over(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }
double Log1POver(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }

}  // namespace

Zipf::Zipf(double theta, uint64_t n) : theta_(theta) {
  KVD_CHECK(theta > 0 && n > 0);
  below_first_ = Integral(1.5) - 1;
  accepted_at_once_ = 2 - InverseOfIntegral(Integral(2.5) - Density(2));
  GrowTo(n);
}

void Zipf::GrowTo(uint64_t n) {
  if (n <= n_) return;
  n_ = n;
  above_last_ = Integral(static_cast<double>(n) + 0.5);
}

// Of x^-theta from 1 to x.
double Zipf::Integral(double x) const {
  const double log_x = std::log(x);
  return ExpM1Over((1 - theta_) * log_x) * log_x;
}

double Zipf::InverseOfIntegral(double y) const {
  const double scaled = std::max(y * (1 - theta_), -1.0);
  return std::exp(Log1POver(scaled) * y);
}

double Zipf::Density(double x) const { return std::exp(-theta_ * std::log(x)); }

uint64_t Zipf::Draw(Random& random) const {
  while (true) {
    const double u = above_last_ + random.NextDouble() * (below_first_ - above_last_);
    const double x = InverseOfIntegral(u);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n_));
    if (rank - x <= accepted_at_once_ || u >= Integral(rank + 0.5) - Density(rank)) {
      return static_cast<uint64_t>(rank);
    }
  }
}

}  // namespace kvd::bench
