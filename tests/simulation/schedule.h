// One history of several clients of one kvd in one thread, in an order that a seed decides: who
// goes on when, which frames have arrived, how far READs and pulls have come, which sessions break,
// and how time passes. The clients' and the server's code is the real one, above their channels.
#pragma once

#include <cstdint>
#include <string>

namespace kvd::test {

struct ScheduleOptions {
  uint64_t seed = 0;
  uint64_t operations = 300;
  // Sessions break, kvd dies and another takes its place, and time jumps. Without, every operation
  // must have an answer.
  bool faults = true;
};

struct ScheduleResult {
  bool ok = false;
  std::string failure;  // for people; empty if ok
  uint64_t operations = 0;
  uint64_t unknown = 0;   // writes whose outcome nobody knows
  uint64_t breaks = 0;    // sessions that broke
  uint64_t deaths = 0;    // of kvd
  uint64_t expiring = 0;  // writes with an expiry
  uint64_t torn_reads = 0;
  uint64_t repeated = 0;  // requests that were sent again
};

// The same options give the same history. Not from several threads.
ScheduleResult RunSchedule(const ScheduleOptions& options);

}  // namespace kvd::test
