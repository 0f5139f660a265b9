// Records what many clients of a real kvd do and see, and checks that it is linearizable.
//
//   history_recorder --kvd=PATH_OF_KVD --ops=300000 --seed=1
//   history_recorder --kvd=PATH_OF_KVD --ops=300000 --seconds=3600 --client_kills=20
//
// Prints what was counted, a line each. Exit: 0 linearizable; 3 not, with what contradicts it on
// stderr; 4 undecided; 1 it could not be run. The seed decides what each client does, not how they
// interleave.
#include <gflags/gflags.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "common/base/clock.h"
#include "tests/linearizability/checker.h"
#include "tests/linearizability/jumping_clock.h"
#include "tests/linearizability/recorded_value.h"
#include "tests/linearizability/recording.h"

DEFINE_string(kvd, "", "path of the kvd binary");
DEFINE_uint64(seed, 1, "seed of every choice");
DEFINE_uint64(ops, 100'000, "operations in a round");
DEFINE_uint64(rounds, 1,
              "rounds, each with a kvd of its own; ends after the first that is wrong, not after "
              "one that is undecided");
DEFINE_uint64(steps_max, kvd::test::CheckOptions().steps_max,
              "steps of the check of a key, after which it is undecided");
DEFINE_double(seconds, 0, "begin rounds for so long, however many");
DEFINE_uint32(clients, 5, "client processes");
DEFINE_uint32(fillers, 1, "further ones that add keys, so that the table grows");
DEFINE_uint32(breathers, 0,
              "further ones that add keys and take them away, so that the table grows and shrinks");
DEFINE_uint32(readers, 0,
              "further ones that only read, and only values that are moved all the time");
DEFINE_uint64(hot_keys, 32, "keys that are used most; at least 8");
DEFINE_int64(deadline_ms, 5000, "deadline of each operation");
DEFINE_uint32(client_kills, 0, "clients killed in a round, and replaced");
DEFINE_uint32(client_stops, 0, "clients stopped for a while in a round");
DEFINE_uint32(kvd_stops, 0, "how often in a round kvd is stopped for a while");
DEFINE_uint32(kvd_restarts, 0, "how often in a round kvd is killed and started anew");
DEFINE_uint32(clock_jumps, 0, "how often in a round Unix time jumps");
DEFINE_string(clock_library, "", "path of libclock_jump.so, for --clock_jumps");
DEFINE_bool(expiry, true, "some items expire");
DEFINE_int64(expiry_error_ms, 300, "how much earlier or later they may be seen to");
DEFINE_bool(readers_differ, true,
            "within that error one client may still see an item that another one has missed");
DEFINE_bool(evict, false, "kvd evicts items when its memory is full");
DEFINE_string(memory, "128m", "kvd's memory");
DEFINE_uint32(pollers, 2, "kvd's pollers");
DEFINE_uint32(bucket_bytes, 1024, "bytes of a bucket of kvd's index");
DEFINE_string(
    rdma, "",
    "address of an RDMA device: kvd serves there too, and all but every fourth client use it");

namespace kvd::test {
namespace {

enum ExitStatus { kLinearizable = 0, kFailed = 1, kViolation = 3, kUndecided = 4 };

RecordingOptions OptionsOfRound(uint64_t round) {
  RecordingOptions options;
  options.kvd = FLAGS_kvd;
  options.kvd_flags = {"--memory=" + FLAGS_memory, "--pollers=" + std::to_string(FLAGS_pollers),
                       "--bucket_bytes=" + std::to_string(FLAGS_bucket_bytes)};
  if (!FLAGS_rdma.empty()) {
    options.kvd_flags.push_back("--listen=" + FLAGS_rdma + ":7711");
    options.kvd_flags.push_back("--insecure");
    options.rdma_target = "rdma:" + FLAGS_rdma + ":7711";
  }
  if (FLAGS_evict) options.kvd_flags.push_back("--evict=lru");
  options.expiry = FLAGS_expiry;
  options.seed = FLAGS_seed + round;
  options.operations = FLAGS_ops;
  options.clients = FLAGS_clients;
  options.fillers = FLAGS_fillers;
  options.breathers = FLAGS_breathers;
  options.readers = FLAGS_readers;
  options.hot_keys = FLAGS_hot_keys;
  options.deadline_ms = FLAGS_deadline_ms;
  options.client_kills = FLAGS_client_kills;
  options.client_stops = FLAGS_client_stops;
  options.kvd_stops = FLAGS_kvd_stops;
  options.kvd_restarts = FLAGS_kvd_restarts;
  options.clock_jumps = FLAGS_clock_jumps;
  return options;
}

void Print(const Recording& recording, const CheckResult& result, uint64_t seed, double recording_s,
           double checking_s) {
  const RecordingBoard& board = recording.board();
  const RecordingFaults& faults = recording.faults();
  std::printf("seed %lu\noperations %lu\nkeys %lu\nunknown %lu\nsteps %lu\n", seed,
              result.operations, result.keys, result.unknown, result.steps);
  std::printf("torn_reads %lu\nmoved_items %lu\nredirects %lu\nconfirmations %lu\n",
              board.torn_reads.load(), board.moved_items.load(), board.redirects.load(),
              board.confirmations.load());
  std::printf("location_hits %lu\nstale_locations %lu\ngets_by_request %lu\n",
              board.location_hits.load(), board.stale_locations.load(),
              board.gets_by_request.load());
  std::printf("scans %lu\n", board.scans.load());
  std::printf("expired_items %lu\nevicted_items %lu\n", board.expired_items, board.evicted_items);
  std::printf("merges %lu\nindex_bytes_given_back %lu\n", board.merges,
              board.index_bytes_given_back);
  std::printf("client_kills %lu\nclient_stops %lu\nkvd_stops %lu\nkvd_kills %lu\nclock_jumps %lu\n",
              faults.client_kills, faults.client_stops, faults.kvd_stops, faults.kvd_kills,
              faults.clock_jumps);
  std::printf("reconnects %lu\nlongest_over_deadline_ms %lu\n", board.reconnects.load(),
              board.longest_over_deadline_ns.load() / 1'000'000);
  std::printf("wrong_keys %lu\nundecided_keys %lu\n", result.violations, result.undecided);
  std::printf("recording_s %.2f\nchecking_s %.2f\n", recording_s, checking_s);
  std::fflush(stdout);
}

double Seconds() { return static_cast<double>(RealClock::Get().NowMonotonicNs()) * 1e-9; }

int Round(uint64_t round) {
  std::unique_ptr<JumpingClock> clock;
  RecordingOptions options = OptionsOfRound(round);
  if (options.clock_jumps != 0) {
    clock = JumpingClock::Create(FLAGS_clock_library);
    options.clock = clock.get();
  }
  const std::unique_ptr<Recording> recording = Recording::Create(options);
  if (recording == nullptr) {
    std::fprintf(stderr, "history_recorder: no memory for %lu operations\n", options.operations);
    return kFailed;
  }
  const double began = Seconds();
  const absl::Status status = recording->Run();
  const double recorded = Seconds();
  CheckOptions check;
  check.steps_max = FLAGS_steps_max;
  check.rules.eviction = FLAGS_evict;
  check.rules.readers_differ = FLAGS_readers_differ;
  check.rules.expiry_error_ns = FLAGS_expiry_error_ms * 1'000'000;
  const CheckResult result = CheckHistory(recording->History(), check);
  Print(*recording, result, options.seed, recorded - began, Seconds() - recorded);
  for (const std::string& report : result.reports) std::fprintf(stderr, "%s", report.c_str());
  if (result.verdict == Verdict::kViolation) return kViolation;
  if (!status.ok()) {
    std::fprintf(stderr, "history_recorder: %s\n", status.ToString().c_str());
    return kFailed;
  }
  return result.verdict == Verdict::kUndecided ? kUndecided : kLinearizable;
}

int Main() {
  const double end = Seconds() + FLAGS_seconds;
  int result = kLinearizable;
  for (uint64_t round = 0; round < FLAGS_rounds || Seconds() < end; ++round) {
    const int exit_status = Round(round);
    if (exit_status == kLinearizable) continue;
    std::fprintf(stderr, "history_recorder: round %lu; repeat it with --seed=%lu --rounds=1\n",
                 round + 1, FLAGS_seed + round);
    if (exit_status != kUndecided) return exit_status;
    result = kUndecided;  // the next round may show what this one left open
  }
  return result;
}

}  // namespace
}  // namespace kvd::test

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/false);
  if (FLAGS_kvd.empty() || FLAGS_ops == 0 || FLAGS_hot_keys < kvd::test::kHotRoles ||
      FLAGS_clients == 0 || FLAGS_clients + FLAGS_fillers + FLAGS_breathers + FLAGS_readers > 64) {
    std::fprintf(stderr, "history_recorder: --kvd, 1 operation, 8 hot keys, 1 to 64 clients\n");
    return 1;
  }
  if (FLAGS_clock_jumps != 0) kvd::test::JumpingClock::TakePartIn(FLAGS_clock_library, argv);
  return kvd::test::Main();
}
