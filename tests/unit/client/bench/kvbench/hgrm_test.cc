#include "client/bench/kvbench/hgrm.h"

#include <memory>
#include <sstream>
#include <string>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::bench {
namespace {

TEST_CASE("Hgrm: a few values, as HdrHistogram prints them") {
  const auto histogram = std::make_unique<LatencyHistogram>();
  for (const int64_t ns : {100, 100, 200, 250}) histogram->Add(ns);
  CHECK(HgrmText(*histogram) ==
        "       Value     Percentile TotalCount 1/(1-Percentile)\n"
        "\n"
        "       0.100 0.000000000000          2           1.00\n"
        "       0.100 0.100000000000          2           1.11\n"
        "       0.100 0.200000000000          2           1.25\n"
        "       0.100 0.300000000000          2           1.43\n"
        "       0.100 0.400000000000          2           1.67\n"
        "       0.100 0.500000000000          2           2.00\n"
        "       0.200 0.550000000000          3           2.22\n"
        "       0.200 0.600000000000          3           2.50\n"
        "       0.200 0.650000000000          3           2.86\n"
        "       0.200 0.700000000000          3           3.33\n"
        "       0.200 0.750000000000          3           4.00\n"
        "       0.250 1.000000000000          4\n"
        "#[Mean    =        0.163, StdDeviation   =        0.065]\n"
        "#[Max     =        0.250, Total count    =            4]\n"
        "#[Buckets =           34, SubBuckets     =          256]\n");
}

TEST_CASE("Hgrm: values and counts only grow, and the last line counts all") {
  const auto histogram = std::make_unique<LatencyHistogram>();
  Random random(6);
  for (int i = 0; i < 100'000; ++i) histogram->Add(static_cast<int64_t>(random.Uniform(1'000'000)));
  std::istringstream lines(HgrmText(*histogram));
  std::string line;
  double value = -1;
  double percentile = -1;
  uint64_t count = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    double next_value = 0;
    double next_percentile = 0;
    uint64_t next_count = 0;
    if (line.starts_with('#') || !(words >> next_value >> next_percentile >> next_count)) continue;
    CHECK(next_value >= value);
    CHECK(next_percentile > percentile);
    CHECK(next_count >= count);
    CHECK(static_cast<double>(next_count) >= next_percentile * 100'000 - 1e-6);
    value = next_value;
    percentile = next_percentile;
    count = next_count;
  }
  CHECK(percentile == 1);
  CHECK(count == 100'000);
}

TEST_CASE("Hgrm: nothing at all") {
  CHECK(HgrmText(LatencyHistogram()).find("Total count    =            0]") != std::string::npos);
}

}  // namespace
}  // namespace kvd::bench
