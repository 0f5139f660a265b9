// Percentiles as HdrHistogram prints them, for the tools that plot its files.
#pragma once

#include <string>

#include "common/base/latency_histogram.h"

namespace kvd::bench {

// The text of a .hgrm file: value in microseconds, percentile, count of values up to it, 1 / (1 -
// percentile); five steps for every halving of what is left. Then mean, deviation, maximum and
// count.
std::string HgrmText(const LatencyHistogram& histogram);

}  // namespace kvd::bench
