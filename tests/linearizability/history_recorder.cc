// Records what many clients of a real kvd do and see, and checks that it is linearizable.
//
//   history_recorder --kvd=PATH_OF_KVD --ops=300000 --seed=1
//   history_recorder --kvd=PATH_OF_KVD --ops=300000 --seconds=3600 --client_kills=20
//
// Prints what was counted, a line each. Exit: 0 linearizable; 3 not, with what contradicts it on
// stderr; 4 undecided; 1 it could not be run. The seed decides what each client does, not how they
// interleave.
#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
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
DEFINE_string(until, "",
              "NAME:COUNT,...: the last round is the one after which all these counts, summed up "
              "over rounds, are there, however many --rounds are left");
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

using Counts = std::map<std::string, uint64_t>;

void AddCounts(const Recording& recording, const CheckResult& result, Counts& counts) {
  const RecordingBoard& board = recording.board();
  const RecordingFaults& faults = recording.faults();
  const std::pair<const char*, uint64_t> counted[] = {
      {"operations", result.operations},
      {"keys", result.keys},
      {"unknown", result.unknown},
      {"steps", result.steps},
      {"torn_reads", board.torn_reads.load()},
      {"moved_items", board.moved_items.load()},
      {"redirects", board.redirects.load()},
      {"confirmations", board.confirmations.load()},
      {"location_hits", board.location_hits.load()},
      {"stale_locations", board.stale_locations.load()},
      {"gets_by_request", board.gets_by_request.load()},
      {"scans", board.scans.load()},
      {"expired_items", board.expired_items},
      {"evicted_items", board.evicted_items},
      {"merges", board.merges},
      {"index_bytes_given_back", board.index_bytes_given_back},
      {"client_kills", faults.client_kills},
      {"client_stops", faults.client_stops},
      {"kvd_stops", faults.kvd_stops},
      {"kvd_kills", faults.kvd_kills},
      {"clock_jumps", faults.clock_jumps},
      {"reconnects", board.reconnects.load()},
      {"longest_over_deadline_ms", board.longest_over_deadline_ns.load() / 1'000'000},
      {"wrong_keys", result.violations},
      {"undecided_keys", result.undecided}};
  for (const auto& [name, count] : counted) {
    std::printf("%s %lu\n", name, count);
    counts[name] += count;
  }
}

// False: not in the form of --until.
bool ParseCounts(const std::string& text, Counts& counts) {
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> named = absl::StrSplit(part, ':');
    if (named.first.empty() || !absl::SimpleAtoi(named.second, &counts[named.first])) return false;
  }
  return true;
}

bool AllThere(const Counts& wanted, const Counts& counts) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) {
    const auto found = counts.find(one.first);
    return found != counts.end() && found->second >= one.second;
  });
}

double Seconds() { return static_cast<double>(RealClock::Get().NowMonotonicNs()) * 1e-9; }

int Round(uint64_t round, Counts& counts) {
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
  std::printf("seed %lu\n", options.seed);
  AddCounts(*recording, result, counts);
  std::printf("recording_s %.2f\nchecking_s %.2f\n", recorded - began, Seconds() - recorded);
  std::fflush(stdout);
  for (const std::string& report : result.reports) std::fprintf(stderr, "%s", report.c_str());
  if (result.verdict == Verdict::kViolation) return kViolation;
  if (!status.ok()) {
    std::fprintf(stderr, "history_recorder: %s\n", status.ToString().c_str());
    return kFailed;
  }
  return result.verdict == Verdict::kUndecided ? kUndecided : kLinearizable;
}

int Main(const Counts& wanted) {
  Counts counts;
  const double end = Seconds() + FLAGS_seconds;
  int result = kLinearizable;
  for (uint64_t round = 0; round < FLAGS_rounds || Seconds() < end; ++round) {
    const int exit_status = Round(round, counts);
    if (exit_status == kLinearizable) {
      if (!wanted.empty() && AllThere(wanted, counts)) break;
      continue;
    }
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
  kvd::test::Counts wanted;
  if (!kvd::test::ParseCounts(FLAGS_until, wanted)) {
    std::fprintf(stderr, "history_recorder: --until=%s: NAME:COUNT,... is wanted\n",
                 FLAGS_until.c_str());
    return 1;
  }
  if (FLAGS_clock_jumps != 0) kvd::test::JumpingClock::TakePartIn(FLAGS_clock_library, argv);
  return kvd::test::Main(wanted);
}
