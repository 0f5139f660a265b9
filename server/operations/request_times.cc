#include "server/operations/request_times.h"

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace kvd {
namespace {

// Names in the statistics, and the label of the metric.
struct KindNames {
  std::string_view operation, p50, p99, max;
};
constexpr KindNames kKindNames[kRequestKinds] = {
    {"put", "time_put_p50_ns", "time_put_p99_ns", "time_put_max_ns"},
    {"delete", "time_delete_p50_ns", "time_delete_p99_ns", "time_delete_max_ns"},
    {"increment", "time_increment_p50_ns", "time_increment_p99_ns", "time_increment_max_ns"},
    {"append", "time_append_p50_ns", "time_append_p99_ns", "time_append_max_ns"},
    {"prepend", "time_prepend_p50_ns", "time_prepend_p99_ns", "time_prepend_max_ns"},
    {"touch", "time_touch_p50_ns", "time_touch_p99_ns", "time_touch_max_ns"},
    {"flush", "time_flush_p50_ns", "time_flush_p99_ns", "time_flush_max_ns"},
    {"other", "time_other_p50_ns", "time_other_p99_ns", "time_other_max_ns"}};

// Upper limits of the histogram's buckets. As `le` says them, so that nobody rounds on the way.
constexpr HistogramLimit kLimits[] = {
    {500, "5e-07"},       {1'000, "1e-06"},     {2'500, "2.5e-06"},    {5'000, "5e-06"},
    {10'000, "1e-05"},    {25'000, "2.5e-05"},  {50'000, "5e-05"},     {100'000, "0.0001"},
    {250'000, "0.00025"}, {500'000, "0.0005"},  {1'000'000, "0.001"},  {2'500'000, "0.0025"},
    {5'000'000, "0.005"}, {10'000'000, "0.01"}, {25'000'000, "0.025"}, {100'000'000, "0.1"},
    {500'000'000, "0.5"},
};

}  // namespace

void AddRequestTimes(std::span<const RequestTimes* const> pollers, StatisticList& list) {
  const auto sum = std::make_unique<LatencyHistogram>();  // too large for a stack
  for (size_t kind = 0; kind < kRequestKinds; ++kind) {
    sum->Clear();
    for (const RequestTimes* times : pollers) sum->Merge(times->of(static_cast<RequestKind>(kind)));
    const KindNames& names = kKindNames[kind];
    list.Gauge(names.p50, sum->Percentile(0.5));
    list.Gauge(names.p99, sum->Percentile(0.99));
    list.Gauge(names.max, sum->max());
    StatisticHistogram histogram;
    for (const HistogramLimit& limit : kLimits)
      histogram.cells.push_back({limit, sum->CountUpTo(limit.ns)});
    histogram.count = sum->count();
    histogram.sum_ns = sum->sum();
    list.Histogram(
        std::move(histogram),
        {.name = "kvd_request_duration_seconds",
         .help = "Time from when kvd took a request to when its reply was posted, by operation.",
         .label = "operation",
         .label_value = names.operation});
  }
}

}  // namespace kvd
