#include "client/bench/kvbench/hgrm.h"

#include <cmath>

#include "absl/strings/str_format.h"

namespace kvd::bench {
namespace {

constexpr double kStepsPerHalving = 5;

double Us(double ns) { return ns / 1e3; }
double Us(uint64_t ns) { return Us(static_cast<double>(ns)); }

}  // namespace

std::string HgrmText(const LatencyHistogram& histogram) {
  std::string text = absl::StrFormat("%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
                                     "1/(1-Percentile)");
  double part = 0;
  uint64_t counted = 0;
  while (counted < histogram.count()) {
    const uint64_t value = histogram.Percentile(part);
    counted = histogram.CountUpTo(value);
    if (counted == histogram.count()) break;
    absl::StrAppendFormat(&text, "%12.3f %2.12f %10d %14.2f\n", Us(value), part, counted,
                          1 / (1 - part));
    const double halvings = std::floor(std::log2(1 / (1 - part))) + 1;
    part += 1 / (kStepsPerHalving * std::exp2(halvings));
  }
  absl::StrAppendFormat(&text, "%12.3f %2.12f %10d\n", Us(histogram.max()), 1.0, counted);
  absl::StrAppendFormat(&text, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n",
                        Us(histogram.Mean()), Us(histogram.StandardDeviation()));
  absl::StrAppendFormat(&text, "#[Max     = %12.3f, Total count    = %12d]\n", Us(histogram.max()),
                        histogram.count());
  absl::StrAppendFormat(&text, "#[Buckets = %12d, SubBuckets     = %12d]\n",
                        LatencyHistogram::kExponentMax - LatencyHistogram::kSubBits + 1,
                        2 << LatencyHistogram::kSubBits);
  return text;
}

}  // namespace kvd::bench
