#include "server/admin/metrics_text.h"

#include <string>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

StatisticList SomeOfEach() {
  StatisticList list;
  list.Gauge("items", 5, {.help = "Items."});
  list.Counter("a_us", 1'000'001,
               {.name = "kvd_cpu_seconds_total",
                .help = "Time.",
                .label = "mode",
                .label_value = "user",
                .is_microseconds = true});
  list.Gauge("pid", 77);
  list.Counter("deletes", 3, {.help = "Deletes."});
  list.Counter("b_us", 50,
               {.name = "kvd_cpu_seconds_total",
                .label = "mode",
                .label_value = "system",
                .is_microseconds = true});
  list.Text("version", "1.2", {.name = "kvd_build_info", .help = "Which.", .label = "version"});
  list.Text("commit", "a\"b\\c\nd", {.name = "kvd_build_info", .label = "commit"});
  return list;
}

}  // namespace

TEST_CASE("Metrics: families in one piece with their help and type, in Prometheus' format") {
  CHECK(MetricsText(SomeOfEach(), MetricsFormat::kPrometheus) ==
        "# HELP kvd_items Items.\n"
        "# TYPE kvd_items gauge\n"
        "kvd_items 5\n"
        "# HELP kvd_cpu_seconds_total Time.\n"
        "# TYPE kvd_cpu_seconds_total counter\n"
        "kvd_cpu_seconds_total{mode=\"user\"} 1.000001\n"
        "kvd_cpu_seconds_total{mode=\"system\"} 0.000050\n"
        "# HELP kvd_deletes_total Deletes.\n"
        "# TYPE kvd_deletes_total counter\n"
        "kvd_deletes_total 3\n"
        "# HELP kvd_build_info Which.\n"
        "# TYPE kvd_build_info gauge\n"
        "kvd_build_info{version=\"1.2\",commit=\"a\\\"b\\\\c\\nd\"} 1\n");
}

TEST_CASE("Metrics: OpenMetrics names families without suffixes, gives units and has an end") {
  CHECK(MetricsText(SomeOfEach(), MetricsFormat::kOpenMetrics) ==
        "# HELP kvd_items Items.\n"
        "# TYPE kvd_items gauge\n"
        "kvd_items 5\n"
        "# HELP kvd_cpu_seconds Time.\n"
        "# TYPE kvd_cpu_seconds counter\n"
        "# UNIT kvd_cpu_seconds seconds\n"
        "kvd_cpu_seconds_total{mode=\"user\"} 1.000001\n"
        "kvd_cpu_seconds_total{mode=\"system\"} 0.000050\n"
        "# HELP kvd_deletes Deletes.\n"
        "# TYPE kvd_deletes counter\n"
        "kvd_deletes_total 3\n"
        "# HELP kvd_build Which.\n"
        "# TYPE kvd_build info\n"
        "kvd_build_info{version=\"1.2\",commit=\"a\\\"b\\\\c\\nd\"} 1\n"
        "# EOF\n");
}

TEST_CASE("Metrics: a histogram has its cells, all, the sum and the count, in both formats") {
  StatisticList list;
  list.Histogram(
      {.cells = {{{500, "5e-07"}, 2}, {{1'000'000, "0.001"}, 5}},
       .count = 6,
       .sum_ns = 2'000'000'500},
      {.name = "kvd_time_seconds", .help = "Time.", .label = "kind", .label_value = "a"});
  list.Gauge("items", 5, {.help = "Items."});
  list.Histogram({.cells = {}, .count = 0, .sum_ns = 0},
                 {.name = "kvd_time_seconds", .label = "kind", .label_value = "b"});
  const std::string samples =
      "kvd_time_seconds_bucket{kind=\"a\",le=\"5e-07\"} 2\n"
      "kvd_time_seconds_bucket{kind=\"a\",le=\"0.001\"} 5\n"
      "kvd_time_seconds_bucket{kind=\"a\",le=\"+Inf\"} 6\n"
      "kvd_time_seconds_sum{kind=\"a\"} 2.000000500\n"
      "kvd_time_seconds_count{kind=\"a\"} 6\n"
      "kvd_time_seconds_bucket{kind=\"b\",le=\"+Inf\"} 0\n"
      "kvd_time_seconds_sum{kind=\"b\"} 0.000000000\n"
      "kvd_time_seconds_count{kind=\"b\"} 0\n";
  CHECK_THAT(MetricsText(list, MetricsFormat::kPrometheus),
             Catch::StartsWith("# HELP kvd_time_seconds Time.\n"
                               "# TYPE kvd_time_seconds histogram\n" +
                               samples));
  CHECK_THAT(MetricsText(list, MetricsFormat::kOpenMetrics),
             Catch::StartsWith("# HELP kvd_time_seconds Time.\n"
                               "# TYPE kvd_time_seconds histogram\n"
                               "# UNIT kvd_time_seconds seconds\n" +
                               samples));
  CHECK(list.Lines() == "items 5\n");
}

TEST_CASE(
    "Metrics: the statistics text of the same list has every name, and none of metrics only") {
  StatisticList list = SomeOfEach();
  list.Gauge("", 1, {.name = "kvd_up", .help = "Up."});
  CHECK(list.Lines() ==
        "items 5\na_us 1000001\npid 77\ndeletes 3\nb_us 50\nversion 1.2\ncommit a\"b\\c\nd\n");
  CHECK_THAT(MetricsText(list, MetricsFormat::kPrometheus), Catch::Contains("\nkvd_up 1\n"));
}

TEST_CASE("Metrics: OpenMetrics for who accepts it, Prometheus' format for all others") {
  const auto is_open = [](std::string_view accept) {
    return MetricsFormatFor(accept) == MetricsFormat::kOpenMetrics;
  };
  CHECK(is_open("application/openmetrics-text"));
  CHECK(is_open("Application/OpenMetrics-Text; version=1.0.0; charset=utf-8"));
  CHECK(
      is_open("application/openmetrics-text;version=1.0.0,application/"
              "openmetrics-text;version=0.0.1;q=0.75,"
              "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
  CHECK(is_open("text/plain, application/openmetrics-text;q=0.2"));
  CHECK_FALSE(is_open(""));
  CHECK_FALSE(is_open("*/*"));
  CHECK_FALSE(is_open("text/plain;version=0.0.4"));
  CHECK_FALSE(is_open("application/openmetrics-text;q=0"));
  CHECK_FALSE(is_open("application/openmetrics-text; q=0.000, text/plain"));
  CHECK_FALSE(is_open("application/openmetrics-textual"));
  CHECK_FALSE(is_open(";;;,,,==q"));
}

}  // namespace kvd::test
