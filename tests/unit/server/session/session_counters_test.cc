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
  CHECK(counters.Note(Gets(10, 1), 0).gets == 10);
  CHECK(counters.Note(Gets(10, 1), 0).gets == 0);
  const ReportedCounts more = counters.Note(Gets(30, 2), 0);  // one in between was lost
  CHECK(more.gets == 20);
  CHECK(more.read_errors == 1);
  CHECK(counters.Note(Gets(20, 1), 0).gets == 0);
  CHECK(counters.reported().gets == 30);
  CHECK(counters.reported().read_errors == 2);
  CHECK(counters.reported().hits == 0);
}

TEST_CASE("Session counters: of a report that says more than can be nothing is taken over") {
  constexpr int64_t kBeginNs = 5'000'000'000;
  constexpr int64_t kSecondNs = 1'000'000'000;
  const uint64_t in_a_second = (kSecondNs + SessionCounters::kGraceNs) /
                               static_cast<int64_t>(SessionCounters::kNsPerCountMin);
  SessionCounters counters;
  counters.Begin(kBeginNs);
  const int64_t now_ns = kBeginNs + kSecondNs;
  CHECK(counters.Note(Gets(10, 1), now_ns).gets == 10);
  for (const ReportedCounts& lie :
       {Gets(UINT64_MAX, 2), Gets(in_a_second + 1, 2), Gets(20, UINT64_MAX)}) {
    const ReportedCounts more = counters.Note(lie, now_ns);
    CHECK(more.gets == 0);
    CHECK(more.read_errors == 0);
  }
  CHECK(counters.disbelieved_reports() == 3);
  CHECK(counters.reported().gets == 10);
  CHECK(counters.reported().read_errors == 1);
  // What can be counts, and what came too early does so later.
  CHECK(counters.Note(Gets(in_a_second, 2), now_ns).gets == in_a_second - 10);
  CHECK(counters.Note(Gets(in_a_second + 1, 2), now_ns + kSecondNs).gets == 1);
  CHECK(counters.Note(Gets(0, 0), now_ns).gets == 0);
  CHECK(counters.disbelieved_reports() == 3);
}

TEST_CASE("Session counters: bytes have a bound of their own, which a real client does not meet") {
  SessionCounters counters;
  ReportedCounts counts{};
  counts.read_bytes = SessionCounters::kReadBytesPerNsMax * SessionCounters::kGraceNs;
  CHECK(counters.Note(counts, 0).read_bytes == counts.read_bytes);
  counts.read_bytes += SessionCounters::kReadBytesPerNsMax;
  CHECK(counters.Note(counts, 0).read_bytes == 0);
  CHECK(counters.disbelieved_reports() == 1);
}

}  // namespace kvd::test
