// Hunts for wrong answers: writers overwrite the same few keys all the time, in place and out of
// place, with values that certify themselves, while readers in other processes read them
// one-sidedly and compare what they get with what the writers had done before and have begun by
// then.
//
//   torn_read_hunt --kvd=PATH_OF_KVD --seconds=10 --seed=1
//
// Prints what was counted, a line each. Exit: 0 nothing wrong was returned; 3 something was, with
// its kind, key and generations on stderr; 1 the hunt could not run.
#include <gflags/gflags.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/kv_client.h"
#include "common/base/clock.h"
#include "common/base/random.h"
#include "tests/stress/hunt_value.h"
#include "tests/support/kvd_process.h"

DEFINE_string(kvd, "", "path of the kvd binary");
DEFINE_double(seconds, 5, "how long to hunt");
DEFINE_uint64(sightings, 0,
              "end sooner, with that many torn reads and as many moved items seen; 0: do not");
DEFINE_uint64(seed, 1, "seed of every choice");
DEFINE_int32(writers, 1, "writer processes");
DEFINE_int32(readers, 2, "reader processes");
DEFINE_uint64(keys, 32, "keys, shared out among the writers");
DEFINE_uint64(value_bytes, 0,
              "size of all values, at least 24; 0: of many sizes. Up to the inline limit they are "
              "overwritten in place");
DEFINE_string(rdma, "",
              "address of an RDMA device: kvd serves there too, and all but every fourth reader "
              "and writer use it");
DEFINE_bool(stop_at_violation, true, "end at the first wrong answer");

namespace kvd::test {
namespace {

constexpr uint64_t kKeysMax = 4096;
constexpr int kProcessesMax = 64;

struct Score {
  alignas(64) std::atomic<uint64_t> issued{0};  // last generation whose write has begun
  std::atomic<uint64_t> acked{0};               // last generation whose write was acknowledged
};

struct Totals {
  alignas(64) uint64_t operations = 0;
  // Kept up to date all the time.
  std::atomic<uint64_t> torn_reads{0};
  std::atomic<uint64_t> moved_items{0};
  // Of a reader that has ended.
  uint64_t stale_locations = 0;
  uint64_t location_hits = 0;
  uint64_t gets_by_request = 0;
  uint64_t confirmations = 0;
};

// Shared by all processes of the hunt.
struct Board {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> violations{0};
  Score scores[kKeysMax];
  Totals totals[kProcessesMax];
};

void Violation(Board& board, const char* kind, uint64_t key, uint64_t got, uint64_t from,
               uint64_t to) {
  std::fprintf(
      stderr,
      "torn_read_hunt: %s: key %lu, generation %lu returned, %lu to %lu were possible (seed %lu)\n",
      kind, key, got, from, to, FLAGS_seed);
  board.violations.fetch_add(1);
  if (FLAGS_stop_at_violation) board.stop.store(true);
}

[[noreturn]] void Fail(Board& board, const char* what, const absl::Status& status) {
  std::fprintf(stderr, "torn_read_hunt: %s: %s\n", what, status.ToString().c_str());
  board.stop.store(true);
  std::_Exit(1);
}

std::unique_ptr<Client> ConnectOrFail(Board& board, const std::string& target,
                                      const ClientOptions& options) {
  auto client = Client::Connect(target, options);
  if (!client.ok()) Fail(board, "connect", client.status());
  return *std::move(client);
}

void MakeValue(uint64_t key, uint64_t generation, std::string& value) {
  if (FLAGS_value_bytes == 0) return MakeHuntValue(key, generation, value);
  MakeStampedValue(key, generation, FLAGS_value_bytes, value);
}

std::optional<uint64_t> Certify(uint64_t key, std::string_view value) {
  if (FLAGS_value_bytes == 0) return CertifyHuntValue(key, value);
  if (value.size() != FLAGS_value_bytes) return std::nullopt;
  return CertifyStampedValue(key, value);
}

// Writer number `writer` owns every key that has that remainder.
void Write(Board& board, const std::string& target, int writer, Totals& totals) {
  const auto client = ConnectOrFail(board, target, {});
  Random random(FLAGS_seed * 31 + static_cast<uint64_t>(writer));
  const auto stride = static_cast<uint64_t>(FLAGS_writers);
  const uint64_t owned = (FLAGS_keys - static_cast<uint64_t>(writer) + stride - 1) / stride;
  std::string value;
  while (!board.stop.load(std::memory_order_relaxed)) {
    const uint64_t key = random.Uniform(owned) * stride + static_cast<uint64_t>(writer);
    Score& score = board.scores[key];
    const uint64_t generation = score.issued.load() + 1;
    absl::Status status;
    if (IsDelete(generation)) {
      score.issued.store(generation);
      status = client->Delete(HuntKey(key));
    } else {
      MakeValue(key, generation, value);
      score.issued.store(generation);
      status = client->Put(HuntKey(key), value).status();
    }
    if (!status.ok()) Fail(board, "write", status);
    score.acked.store(generation);
    ++totals.operations;
  }
}

// A value that was read must be one that the key may have had during the read, and never an older
// one than this reader has seen before.
void Check(Board& board, uint64_t key, const absl::Status& status, const std::string& value,
           uint64_t from, uint64_t to, uint64_t& seen) {
  if (absl::IsNotFound(status)) {
    if (!MayBeAbsent(std::max(from, seen), to)) Violation(board, "wrong miss", key, 0, from, to);
    return;
  }
  if (!status.ok()) Fail(board, "read", status);
  const auto generation = Certify(key, value);
  if (!generation.has_value()) {
    Violation(board, "torn value", key, 0, from, to);
  } else if (*generation < from || *generation > to) {
    Violation(board, "stale value", key, *generation, from, to);
  } else if (*generation < seen) {
    Violation(board, "value went back", key, *generation, seen, to);
  } else {
    seen = *generation;
  }
}

void Read(Board& board, const std::string& target, int reader, Totals& totals) {
  ClientOptions options;
  options.location_cache_entries = reader % 2 == 0 ? 1024 : 0;
  options.read_whole_buckets = reader % 4 >= 2;
  const auto client = ConnectOrFail(board, target, options);
  Random random(FLAGS_seed * 37 + static_cast<uint64_t>(reader));
  std::vector<uint64_t> seen(FLAGS_keys, 0);
  std::string value;
  while (!board.stop.load(std::memory_order_relaxed)) {
    const uint64_t key = random.Uniform(FLAGS_keys);
    const uint64_t from = board.scores[key].acked.load();
    const absl::Status status = client->Get(HuntKey(key), value);
    const uint64_t to = board.scores[key].issued.load();
    Check(board, key, status, value, from, to, seen[key]);
    if (++totals.operations % 64 != 0) continue;
    const ClientCounters counters = client->counters();
    totals.torn_reads.store(counters.torn_reads, std::memory_order_relaxed);
    totals.moved_items.store(counters.moved_items, std::memory_order_relaxed);
  }
  const ClientCounters counters = client->counters();
  totals.torn_reads = counters.torn_reads;
  totals.moved_items = counters.moved_items;
  totals.stale_locations = counters.stale_locations;
  totals.location_hits = counters.location_hits;
  totals.gets_by_request = counters.gets_by_request;
  totals.confirmations = counters.confirmations;
}

Board& MakeBoard() {
  void* memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("torn_read_hunt: mmap");
    std::exit(1);
  }
  return *new (memory) Board;
}

void Print(const Board& board) {
  Totals writes;
  Totals reads;
  for (int i = 0; i < FLAGS_writers; ++i) writes.operations += board.totals[i].operations;
  for (int i = FLAGS_writers; i < FLAGS_writers + FLAGS_readers; ++i) {
    const Totals& totals = board.totals[i];
    reads.operations += totals.operations;
    reads.torn_reads += totals.torn_reads;
    reads.moved_items += totals.moved_items;
    reads.stale_locations += totals.stale_locations;
    reads.location_hits += totals.location_hits;
    reads.gets_by_request += totals.gets_by_request;
    reads.confirmations += totals.confirmations;
  }
  std::printf("seed %lu\nwrites %lu\nreads %lu\ntorn_reads_seen %lu\nmoved_items_seen %lu\n",
              FLAGS_seed, writes.operations, reads.operations, reads.torn_reads.load(),
              reads.moved_items.load());
  std::printf(
      "location_hits %lu\nstale_locations %lu\ngets_by_request %lu\nconfirmations "
      "%lu\nwrong_answers %lu\n",
      reads.location_hits, reads.stale_locations, reads.gets_by_request, reads.confirmations,
      board.violations.load());
}

// Where process number `i` connects to.
std::string TargetOf(const KvdProcess& kvd, int i) {
  const bool over_rdma = !FLAGS_rdma.empty() && i % 4 != 3;
  return over_rdma ? "rdma:" + FLAGS_rdma + ":7711" : kvd.target();
}

bool SawEnough(const Board& board) {
  if (FLAGS_sightings == 0) return false;
  uint64_t torn_reads = 0;
  uint64_t moved_items = 0;
  for (const Totals& totals : board.totals) {
    torn_reads += totals.torn_reads.load(std::memory_order_relaxed);
    moved_items += totals.moved_items.load(std::memory_order_relaxed);
  }
  return std::min(torn_reads, moved_items) >= FLAGS_sightings;
}

int Main() {
  Board& board = MakeBoard();
  KvdProcess kvd;
  std::vector<std::string> flags = {"--memory=64m"};
  if (!FLAGS_rdma.empty())
    flags.insert(flags.end(), {"--listen=" + FLAGS_rdma + ":7711", "--insecure"});
  if (absl::Status started = kvd.Start(FLAGS_kvd, flags); !started.ok()) {
    std::fprintf(stderr, "torn_read_hunt: %s\n", started.ToString().c_str());
    return 1;
  }
  std::vector<pid_t> children;
  for (int i = 0; i < FLAGS_writers + FLAGS_readers; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      if (i < FLAGS_writers) {
        Write(board, TargetOf(kvd, i), i, board.totals[i]);
      } else {
        Read(board, TargetOf(kvd, i - FLAGS_writers), i - FLAGS_writers, board.totals[i]);
      }
      std::_Exit(0);
    }
    children.push_back(child);
  }
  const int64_t end_ns =
      RealClock::Get().NowMonotonicNs() + static_cast<int64_t>(FLAGS_seconds * 1e9);
  while (!board.stop.load() && !SawEnough(board) && RealClock::Get().NowMonotonicNs() < end_ns)
    usleep(1000);
  board.stop.store(true);
  bool failed = false;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status != 0;
  }
  Print(board);
  if (board.violations.load() != 0) return 3;
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace kvd::test

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_keys == 0 || FLAGS_keys > kvd::test::kKeysMax || FLAGS_writers < 1 ||
      FLAGS_readers < 1 || (FLAGS_value_bytes != 0 && FLAGS_value_bytes < 24) ||
      FLAGS_writers + FLAGS_readers > kvd::test::kProcessesMax) {
    std::fprintf(stderr,
                 "torn_read_hunt: 1 to 4096 keys, 1 to 64 processes; values of 24 bytes or more\n");
    return 1;
  }
  return kvd::test::Main();
}
