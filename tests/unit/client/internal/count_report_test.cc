// What a client tells of its counters, and when.
#include "client/internal/count_report.h"

#include "tests/support/test.h"

namespace kvd {
namespace {

constexpr int64_t kEach = CountReport::kEachNs;

ReportedCounts Gets(uint64_t gets) {
  ReportedCounts counts{};
  counts.gets = gets;
  return counts;
}

TEST_CASE("Count report: due every few seconds, for a server that takes counts") {
  CountReport report;
  CHECK_FALSE(report.due(INT64_MAX));
  report.Begin(true, false, Gets(0), 1000);
  CHECK_FALSE(report.due(1000 + kEach - 1));
  CHECK(report.due(1000 + kEach));
  CHECK_FALSE(report.anything_new(Gets(0)));
  CHECK(report.anything_new(Gets(5)));
  // Not sent for want of a credit: it stays due.
  CHECK(report.due(2000 + kEach));
  report.Told(Gets(5), 2000 + kEach);
  CHECK_FALSE(report.due(2000 + 2 * kEach - 1));
  CHECK(report.due(2000 + 2 * kEach));
  CHECK_FALSE(report.anything_new(Gets(5)));
  report.Begin(false, true, Gets(5), 0);
  CHECK_FALSE(report.due(INT64_MAX));
}

TEST_CASE("Count report: what came together in a session, and what the one before had not told") {
  CountReport report;
  report.Begin(true, false, Gets(0), 0);
  CHECK(report.SinceBegin(Gets(5)).gets == 5);
  report.Told(Gets(5), 0);
  CHECK(report.SinceBegin(Gets(8)).gets == 8);  // not only what is new
  // The session breaks with 12, of which 5 were told.
  report.Begin(true, true, Gets(12), 0);
  CHECK(report.anything_new(Gets(12)));
  CHECK(report.SinceBegin(Gets(12)).gets == 7);
  report.Told(Gets(12), 0);
  CHECK(report.SinceBegin(Gets(20)).gets == 15);
}

TEST_CASE("Count report: a server that began anew is not told of what was before it") {
  CountReport report;
  report.Begin(true, false, Gets(0), 0);
  report.Told(Gets(5), 0);
  report.Begin(true, false, Gets(12), 0);
  CHECK_FALSE(report.anything_new(Gets(12)));
  CHECK(report.SinceBegin(Gets(14)).gets == 2);
}

TEST_CASE("Count report: what each of a client's counters is called") {
  ClientCounters counters;
  counters.gets = 1;
  counters.hits = 2;
  counters.misses = 3;
  counters.reads = 4;
  counters.read_bytes = 5;
  counters.torn_reads = 6;
  counters.moved_items = 10;
  counters.redirects = 100;
  counters.stale_locations = 1000;
  counters.gets_by_request = 8;
  counters.read_errors = 9;
  const ReportedCounts reported = ReportedOf(counters);
  CHECK(reported.gets == 1);
  CHECK(reported.hits == 2);
  CHECK(reported.misses == 3);
  CHECK(reported.reads == 4);
  CHECK(reported.read_bytes == 5);
  CHECK(reported.torn_reads == 6);
  CHECK(reported.retries == 1110);
  CHECK(reported.fallbacks == 8);
  CHECK(reported.read_errors == 9);
}

}  // namespace
}  // namespace kvd
