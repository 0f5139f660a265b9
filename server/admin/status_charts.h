// Drawings of the status page: HTML with SVG in it.
#pragma once

#include <string>

#include "common/base/statistic_list.h"

namespace kvd {

// What the region is used for, as one bar, with the legend below it.
std::string MemoryMap(const StatisticList& statistics);

// What the pages of items hold, by the items' size. Empty if that is not known.
std::string SizeTable(const StatisticList& statistics);

// How long requests took: for each operation that there was, percentiles and a bar for each range
// of times. Empty if there is no such histogram.
std::string RequestTimesChart(const StatisticList& statistics);

}  // namespace kvd
