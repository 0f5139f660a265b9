// Statistics as metrics, in the two text formats that Prometheus reads.
#pragma once

#include <string>
#include <string_view>

#include "common/base/statistic_list.h"

namespace kvd {

enum class MetricsFormat { kPrometheus, kOpenMetrics };

// kOpenMetrics where the value of an Accept header names it, with whatever weight but 0.
MetricsFormat MetricsFormatFor(std::string_view accept);

// As in an HTTP header.
std::string_view ContentTypeOf(MetricsFormat format);

// Prometheus' text format 0.0.4, or OpenMetrics 1.0. A family's rows need not stand side by side
// in the list; they do in the text, as both formats ask.
std::string MetricsText(const StatisticList& statistics, MetricsFormat format);

}  // namespace kvd
