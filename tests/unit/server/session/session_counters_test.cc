// What a session's client says of itself, and what is made of it.
#include "server/session/session_counters.h"

#include "tests/support/test.h"

namespace kvd::test {
namespace {

ReportedCounts Gets(uint64_t gets, uint64_t read_errors) {
  ReportedCounts counts{};
  counts.gets = gets;
  counts.read_errors = read_errors;
  return counts;
}

}  // namespace

TEST_CASE("Session counters: a report counts once, repeated, late or after one that was lost") {
  SessionCounters counters;
  CHECK(counters.Note(Gets(10, 1)).gets == 10);
  CHECK(counters.Note(Gets(10, 1)).gets == 0);
  const ReportedCounts more = counters.Note(Gets(30, 2));  // one in between was lost
  CHECK(more.gets == 20);
  CHECK(more.read_errors == 1);
  CHECK(counters.Note(Gets(20, 1)).gets == 0);
  CHECK(counters.reported().gets == 30);
  CHECK(counters.reported().read_errors == 2);
  CHECK(counters.reported().hits == 0);
}

TEST_CASE("Session counters: nobody can say more than there can be, nor take anything back") {
  SessionCounters counters;
  CHECK(counters.Note(Gets(UINT64_MAX, 3)).gets == SessionCounters::kReportedMax);
  CHECK(counters.Note(Gets(UINT64_MAX - 1, 3)).gets == 0);
  CHECK(counters.Note(Gets(0, 0)).gets == 0);
  CHECK(counters.reported().gets == SessionCounters::kReportedMax);
  CHECK(counters.reported().read_errors == 3);
}

}  // namespace kvd::test
