// One-sided GETs while the table grows: percentiles of each stretch of growth, and of the steady state afterwards.
//
//   bazel run --config=opt //client/bench:growth_benchmark -- --server=shm:/run/kvd/kvd.sock --keys=10000000
//
// A writer inserts new keys as fast as kvd takes them, from --from to --keys; a reader GETs random ones of those that are
// there. In the steady state the writer goes on, over keys that exist. What counts is the ratio of the two.
#include <gflags/gflags.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/bench/dataset.h"
#include "client/kv_client.h"
#include "common/base/clock.h"

DEFINE_string(server, "", "kvd to measure; empty: the default socket");
DEFINE_uint64(from, 1000, "items at the beginning");
DEFINE_uint64(keys, 10'000'000, "items at the end");
DEFINE_uint64(value_bytes, 64, "bytes per value, at least 8");

namespace kvd::bench {
namespace {

[[noreturn]] void Die(const std::string& what, const absl::Status& status) {
  std::fprintf(stderr, "growth_benchmark: %s: %s\n", what.c_str(), status.ToString().c_str());
  std::exit(1);
}

std::unique_ptr<Client> ConnectOrDie() {
  ClientOptions options;
  options.name = "growth_benchmark";
  auto client = Client::Connect(FLAGS_server, options);
  if (!client.ok()) Die("connect", client.status());
  return *std::move(client);
}

// Times of GETs, in buckets of 1/16 of a power of two.
class Histogram {
 public:
  void Add(int64_t ns) {
    const auto value = static_cast<uint64_t>(std::max<int64_t>(ns, 16));
    const int shift = 59 - __builtin_clzll(value);
    ++counts_[static_cast<size_t>(shift) * 16 + (value >> shift & 15)];
    ++total_;
  }
  double Percentile(double part) const {
    uint64_t left = static_cast<uint64_t>(part * static_cast<double>(total_));
    for (size_t i = 0; i < std::size(counts_); ++i) {
      if (counts_[i] > left) return static_cast<double>((16 + i % 16) << (i / 16));
      left -= counts_[i];
    }
    return 0;
  }
  uint64_t total() const { return total_; }

 private:
  uint64_t counts_[64 * 16] = {};
  uint64_t total_ = 0;
};

void Put(Client& client, uint64_t n, std::string& value) {
  value.assign(FLAGS_value_bytes, static_cast<char>('a' + n % 26));
  if (auto put = client.Put(Key(n).view(), value); !put.ok()) Die("put", put.status());
}

// Reads keys below `*there` until it reaches `until`, or `gets` GETs if that is not 0.
Histogram Read(Client& client, const std::atomic<uint64_t>& there, uint64_t until, uint64_t gets, uint64_t seed) {
  Histogram histogram;
  Random random(seed);
  std::string value;
  for (uint64_t now = there.load(); gets != 0 ? histogram.total() < gets : now < until; now = there.load()) {
    const uint64_t n = random.Uniform(now);
    const int64_t begin_ns = RealClock::Get().NowMonotonicNs();
    const absl::Status status = client.Get(Key(n).view(), value);
    histogram.Add(RealClock::Get().NowMonotonicNs() - begin_ns);
    if (!status.ok()) Die("a key that is there was not found", status);
    if (value[value.size() - 1] != static_cast<char>('a' + n % 26)) Die("wrong value", absl::DataLossError("get"));
  }
  return histogram;
}

void Print(const char* name, uint64_t from, uint64_t to, const Histogram& histogram, double reads_per_get) {
  std::printf("%-8s %9lu to %9lu items  %9lu GETs  p50 %7.0f ns  p99 %7.0f  p99.9 %8.0f  READs per GET %.3f\n", name, from,
              to, histogram.total(), histogram.Percentile(0.5), histogram.Percentile(0.99), histogram.Percentile(0.999),
              reads_per_get);
  std::fflush(stdout);
}

int Main() {
  const auto reader = ConnectOrDie();
  std::string value;
  for (uint64_t n = 0; n < FLAGS_from; ++n) Put(*reader, n, value);
  std::atomic<uint64_t> there{FLAGS_from};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    const auto client = ConnectOrDie();
    std::string bytes;
    for (uint64_t n = FLAGS_from; n < FLAGS_keys; ++n) {
      Put(*client, n, bytes);
      there.store(n + 1);
    }
    Random random(3);
    while (!stop) Put(*client, random.Uniform(FLAGS_keys), bytes);
  });
  double worst = 0;
  for (uint64_t from = FLAGS_from; from < FLAGS_keys;) {
    const uint64_t to = std::min(from * 10, FLAGS_keys);
    const ClientCounters before = reader->counters();
    const Histogram histogram = Read(*reader, there, to, 0, from);
    const ClientCounters after = reader->counters();
    Print("growing", from, to, histogram,
          static_cast<double>(after.reads - before.reads) / static_cast<double>(after.gets - before.gets));
    worst = std::max(worst, histogram.Percentile(0.999));
    from = to;
  }
  const ClientCounters before = reader->counters();
  const Histogram steady = Read(*reader, there, 0, 5'000'000, 5);
  const ClientCounters after = reader->counters();
  stop = true;
  writer.join();
  Print("steady", FLAGS_keys, FLAGS_keys, steady,
        static_cast<double>(after.reads - before.reads) / static_cast<double>(after.gets - before.gets));
  std::printf("p99.9, worst stretch of growth / steady state: %.2f\n", worst / steady.Percentile(0.999));
  return 0;
}

}  // namespace
}  // namespace kvd::bench

int main(int argc, char** argv) {
  gflags::SetUsageMessage("one-sided GETs while the table grows, and afterwards");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_value_bytes < 8 || FLAGS_from < 2 || FLAGS_keys <= FLAGS_from) {
    std::fprintf(stderr, "growth_benchmark: at least 2 keys to begin with, more at the end, 8 bytes a value\n");
    return 2;
  }
  return kvd::bench::Main();
}
