#include "server/poller/slow_log.h"

#include <string>
#include <vector>

#include "tests/support/test.h"

namespace kvd::test {

TEST_CASE("Slow log: keeps the newest, and counts them all") {
  SlowLog log;
  CHECK(log.Newest().empty());
  for (uint64_t i = 1; i <= SlowLog::kKept + 5; ++i) log.Add({.session_id = i});
  const std::vector<SlowRequest> newest = log.Newest();
  REQUIRE(newest.size() == SlowLog::kKept);
  CHECK(newest.front().session_id == SlowLog::kKept + 5);
  CHECK(newest.back().session_id == 6);
  CHECK(log.total() == SlowLog::kKept + 5);
  log.Add({.requests = 32});
  CHECK(log.total() == SlowLog::kKept + 37);
}

TEST_CASE(
    "Slow log: a line says who, what and where the time went, whatever the client is called") {
  const std::vector<SlowRequest> requests = {{.at_unix_us = 1'700'000'000'000'000,
                                              .requests = 3,
                                              .operation = "put",
                                              .session_id = 7,
                                              .name = "load er\n=",
                                              .key_bytes = 3,
                                              .value_bytes = 1 << 20,
                                              .phases = {.waiting_ns = 1'000,
                                                         .pulling_ns = 30'000'000,
                                                         .evicting_ns = 2'000'000,
                                                         .executing_ns = 5'000,
                                                         .stalled_ns = 9'000}},
                                             {}};
  CHECK(DescribeSlowRequests(requests) ==
        "at_unix_us=1700000000000000 requests=3 operation=put session=7 name=load?er?= key_bytes=3 "
        "value_bytes=1048576 us=32015 phase=pulling waiting_us=1 pulling_us=30000 "
        "evicting_us=2000 executing_us=5 stalled_us=9\n"
        "at_unix_us=0 requests=1 operation= session=0 name=- key_bytes=0 value_bytes=0 us=0 "
        "phase=executing "
        "waiting_us=0 pulling_us=0 evicting_us=0 executing_us=0 stalled_us=0\n");
}

}  // namespace kvd::test
