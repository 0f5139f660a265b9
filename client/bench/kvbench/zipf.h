// Ranks by Zipf's law.
#pragma once

#include <cstdint>

#include "common/base/random.h"

namespace kvd::bench {

// Draws rank k of 1..n with a probability exactly proportional to k^-theta, for n of any size, in
// constant time and memory: W. Hormann and G. Derflinger, "Rejection-inversion to generate variates
// from monotone discrete distributions", ACM TOMACS 6(3), 1996. (The generator of Gray et al.,
// SIGMOD 1994, which YCSB uses, is exact for the first two ranks only, and has to sum up n terms
// before it can begin.)
class Zipf {
 public:
  // `theta` above 0; 1 is fine. `n` at least 1.
  Zipf(double theta, uint64_t n);

  // There are more ranks from now on. Costs about as much as one draw.
  void GrowTo(uint64_t n);

  uint64_t n() const { return n_; }

  uint64_t Draw(Random& random) const;

 private:
  double Integral(double x) const;
  double InverseOfIntegral(double y) const;
  double Density(double x) const;

  double theta_;
  uint64_t n_ = 0;
  double below_first_;       // the integral's value where the first rank's share of it begins
  double above_last_ = 0;    // and where that of the last one ends
  double accepted_at_once_;  // a draw that is rounded up by no more than this needs no further look
};

}  // namespace kvd::bench
