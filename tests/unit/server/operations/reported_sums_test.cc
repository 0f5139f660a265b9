// Sums of what clients say.
#include <bit>

#include "server/operations/statistics.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

ReportedCounts All(uint64_t of_each) {
  ReportedWords words;
  words.fill(of_each);
  return std::bit_cast<ReportedCounts>(words);
}

}  // namespace

TEST_CASE("Reported sums: of all sessions and pollers, and they do not overflow") {
  ReportedSums sums;
  sums.Add(All(5));
  sums.Add(All(7));
  CHECK(sums.get().gets == 12);
  CHECK(sums.get().read_errors == 12);
  CHECK((sums.get() + All(3)).hits == 15);
  for (int liars = 0; liars < 40; ++liars) sums.Add(All(uint64_t{1} << 60));
  CHECK(sums.get().gets == UINT64_MAX);
  CHECK((sums.get() + sums.get()).read_errors == UINT64_MAX);
}

TEST_CASE("Reported sums: each is in the statistics, and says whose word it is") {
  RequestCounters counters;
  counters.reported.Add({1, 2, 3, 4, 5, 6, 7, 8, 9});
  const RequestCounters* const pollers[] = {&counters, &counters};
  StatisticList list;
  AddRequests(pollers, list);
  for (size_t i = 0; i < kReportedCounts; ++i) {
    const Statistic* const row = list.Find(kReportedNames[i]);
    REQUIRE(row != nullptr);
    CHECK(row->number == 2 * (i + 1));
    CHECK(row->kind == StatisticKind::kCounter);
    CHECK(row->MetricName() == "kvd_client_" + std::string(row->name) + "_total");
    CHECK_THAT(std::string(row->metric.help), Catch::Contains("report."));
  }
}

}  // namespace kvd::test
