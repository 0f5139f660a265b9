// Runs schedules, one seed after the other, until one fails: see schedule.h.
//
//   schedules --seed=1 --count=1000             so many
//   schedules --seed=1 --seconds=3600           or for so long
//   schedules --seed=4711                       that one again, with all that is known of it
//
// The last line has the totals. Exit: 0 none failed, 3 one did.
#include <gflags/gflags.h>

#include <chrono>
#include <cstdio>

#include "tests/simulation/schedule.h"

DEFINE_uint64(seed, 1, "of the first schedule; the next has the next number");
DEFINE_uint64(count, 1, "schedules");
DEFINE_uint64(seconds, 0, "how long instead; 0: count");
DEFINE_uint64(operations, 300, "operations of each");
DEFINE_int32(without_faults_in, 4, "one in so many is without faults");

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  const auto begin = std::chrono::steady_clock::now();
  kvd::test::ScheduleResult sum;
  uint64_t schedules = 0;
  int status = 0;
  while (status == 0) {
    const bool over = FLAGS_seconds == 0 ? schedules == FLAGS_count
                                         : std::chrono::steady_clock::now() - begin >=
                                               std::chrono::seconds(FLAGS_seconds);
    if (over) break;
    kvd::test::ScheduleOptions options;
    options.seed = FLAGS_seed + schedules;
    options.operations = FLAGS_operations;
    options.faults = options.seed % static_cast<uint64_t>(FLAGS_without_faults_in) != 0;
    const kvd::test::ScheduleResult result = kvd::test::RunSchedule(options);
    ++schedules;
    sum.operations += result.operations;
    sum.unknown += result.unknown;
    sum.breaks += result.breaks;
    sum.torn_reads += result.torn_reads;
    sum.deaths += result.deaths;
    sum.expiring += result.expiring;
    if (result.ok) continue;
    std::printf("seed %lu: %s\nto repeat it: %s --seed=%lu --operations=%lu\n", options.seed,
                result.failure.c_str(), argv[0], options.seed, options.operations);
    status = 3;
  }
  std::printf(
      "%lu schedules, %lu operations, %lu of unknown outcome, %lu sessions broken, %lu torn reads "
      "seen, kvd dead %lu times, %lu writes with an expiry\n",
      schedules, sum.operations, sum.unknown, sum.breaks, sum.torn_reads, sum.deaths, sum.expiring);
  return status;
}
