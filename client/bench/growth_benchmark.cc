// One-sided GETs while the table grows, and in the steady state between stretches of growth.
//
//   bazel run --config=opt //client/bench:growth_benchmark -- --server=shm:/run/kvd/kvd.sock --keys=10000000
//
// A writer writes batches at one rate all the time: new keys while the table is to grow, keys that exist otherwise. So a
// reader, which GETs random ones of those that are there, competes for processors and memory with the same load in both.
// It measures windows of GETs; what is printed are medians over the windows of a phase, as what else runs on the machine
// comes and goes.
#include <gflags/gflags.h>

#include <algorithm>
#include <atomic>
#include <chrono>
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
// Large, for the writer takes the reader's processor at each: less often than one in 1,000 GETs, or p99.9 shows that alone.
DEFINE_uint64(batch, 512, "keys that are written at once");
DEFINE_uint64(writes_per_s, 100'000, "keys written a second, while the table grows and otherwise; 0: as many as kvd takes");
DEFINE_uint64(window_gets, 50'000, "GETs of a window");
DEFINE_uint64(steady_windows, 200, "windows of a steady state");
DEFINE_bool(read_whole_buckets, false, "read buckets whole, as over RDMA, to count READs");

namespace kvd::bench {
namespace {

int64_t NowNs() { return RealClock::Get().NowMonotonicNs(); }

[[noreturn]] void Die(const std::string& what, const absl::Status& status) {
  std::fprintf(stderr, "growth_benchmark: %s: %s\n", what.c_str(), status.ToString().c_str());
  std::exit(1);
}

std::unique_ptr<Client> ConnectOrDie() {
  ClientOptions options;
  options.name = "growth_benchmark";
  options.deadline = std::chrono::seconds(60);
  options.credits = 64;
  options.read_whole_buckets = FLAGS_read_whole_buckets;
  auto client = Client::Connect(FLAGS_server, options);
  if (!client.ok()) Die("connect", client.status());
  return *std::move(client);
}

char LetterOf(uint64_t n) { return static_cast<char>('a' + n % 26); }

class Writer {
 public:
  Writer() {
    for (uint64_t n = 0; n < 26; ++n) values_.emplace_back(FLAGS_value_bytes, LetterOf(n));
    thread_ = std::thread([this] { Run(); });
  }
  ~Writer() {
    stop_ = true;
    thread_.join();
  }

  // Keys below it are there.
  uint64_t there() const { return there_.load(); }
  void GrowTo(uint64_t keys) { goal_ = keys; }
  uint64_t written() const { return written_.load(); }

 private:
  void Run() {
    const auto client = ConnectOrDie();
    Random random(3);
    std::vector<uint64_t> numbers;
    int64_t due_ns = NowNs();
    while (!stop_) {
      numbers.clear();
      const uint64_t have = there_;
      const uint64_t goal = goal_;
      const bool grows = have < goal;
      if (have == 0 && !grows) continue;
      for (uint64_t i = 0; i < (grows ? std::min(FLAGS_batch, goal - have) : FLAGS_batch); ++i) {
        numbers.push_back(grows ? have + i : random.Uniform(have));
      }
      Put(*client, numbers);
      if (grows) there_ = have + numbers.size();
      written_ += numbers.size();
      if (FLAGS_writes_per_s == 0 || have < FLAGS_from) continue;
      // Never more than a little behind: a writer that was stopped for a while does not make up for it.
      due_ns = std::max(due_ns, NowNs() - 1'000'000) +
               static_cast<int64_t>(numbers.size() * 1'000'000'000 / FLAGS_writes_per_s);
      if (const int64_t early_ns = due_ns - NowNs(); early_ns > 0) {
        std::this_thread::sleep_for(std::chrono::nanoseconds(early_ns));
      }
    }
  }

  void Put(Client& client, const std::vector<uint64_t>& numbers) {
    std::vector<Key> keys;
    for (const uint64_t n : numbers) keys.emplace_back(n);
    std::vector<PutRequest> puts;
    for (size_t i = 0; i < numbers.size(); ++i) puts.push_back({keys[i].view(), values_[numbers[i] % 26]});
    for (const auto& put : client.MultiPut(puts)) {
      if (!put.ok()) Die("put", put.status());
    }
  }

  std::vector<std::string> values_;  // by letter
  std::atomic<uint64_t> there_{0};
  std::atomic<uint64_t> goal_{0};
  std::atomic<uint64_t> written_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Percentiles of one window, or of a phase: then medians over its windows.
struct Percentiles {
  int64_t p50 = 0;
  int64_t p99 = 0;
  int64_t p999 = 0;
};

int64_t Median(std::vector<Percentiles>& windows, int64_t Percentiles::*which) {
  const auto middle = windows.begin() + static_cast<std::ptrdiff_t>(windows.size() / 2);
  std::nth_element(windows.begin(), middle, windows.end(),
                   [which](const Percentiles& a, const Percentiles& b) { return a.*which < b.*which; });
  return (*middle).*which;
}

class Reader {
 public:
  explicit Reader(const Writer& writer) : client_(ConnectOrDie()), writer_(writer) {}

  // While keys are added up to `until`; or, where they are there, for as many windows as flags say.
  Percentiles Measure(const char* phase, uint64_t until) {
    const uint64_t from = writer_.there();
    const bool steady = from >= until;
    const ClientCounters before = client_->counters();
    const uint64_t written = writer_.written();
    const int64_t begin_ns = NowNs();
    std::vector<Percentiles> windows;
    while (steady ? windows.size() < FLAGS_steady_windows : writer_.there() < until) windows.push_back(Window(until, steady));
    const double seconds = static_cast<double>(NowNs() - begin_ns) / 1e9;
    const ClientCounters after = client_->counters();
    const uint64_t gets = after.gets - before.gets;
    const Percentiles found{Median(windows, &Percentiles::p50), Median(windows, &Percentiles::p99),
                            Median(windows, &Percentiles::p999)};
    std::printf("%-8s %9lu to %9lu items %10lu GETs %5zu windows  p50 %7ld ns  p99 %7ld  p99.9 %8ld  READs per GET %.3f  "
                "%.0f writes/s\n",
                phase, from, writer_.there(), gets, windows.size(), found.p50, found.p99, found.p999,
                static_cast<double>(after.reads - before.reads) / static_cast<double>(gets),
                static_cast<double>(writer_.written() - written) / seconds);
    std::fflush(stdout);
    return found;
  }

 private:
  // Ends early where growth does.
  Percentiles Window(uint64_t until, bool steady) {
    times_.clear();
    uint64_t have = writer_.there();
    while (times_.size() < FLAGS_window_gets && (steady || have < until || times_.size() < 1000)) {
      Get(random_.Uniform(have));
      have = writer_.there();
    }
    return {At(0.5), At(0.99), At(0.999)};
  }

  void Get(uint64_t n) {
    const Key key(n);
    const int64_t begin_ns = NowNs();
    const absl::Status status = client_->Get(key.view(), value_);
    times_.push_back(NowNs() - begin_ns);
    if (!status.ok()) Die("a key that is there was not found", status);
    if (value_.size() != FLAGS_value_bytes || value_.back() != LetterOf(n)) Die("wrong value", absl::DataLossError("get"));
  }

  int64_t At(double part) {
    const auto at = times_.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(times_.size()));
    std::nth_element(times_.begin(), at, times_.end());
    return *at;
  }

  const std::unique_ptr<Client> client_;
  const Writer& writer_;
  Random random_{5};
  std::vector<int64_t> times_;
  std::string value_;
};

int Main() {
  Writer writer;
  Reader reader(writer);
  writer.GrowTo(FLAGS_from);
  while (writer.there() < FLAGS_from) std::this_thread::yield();
  Percentiles before = reader.Measure("steady", FLAGS_from);
  double worst = 0;
  for (uint64_t to = FLAGS_from; to < FLAGS_keys;) {
    to = std::min(to * 10, FLAGS_keys);
    writer.GrowTo(to);
    const Percentiles growing = reader.Measure("growing", to);
    const Percentiles after = reader.Measure("steady", to);
    const double ratio = static_cast<double>(growing.p999) / static_cast<double>(after.p999);
    std::printf("p99.9 growing / steady: %.2f (of the items after it), %.2f (of those before it)\n", ratio,
                static_cast<double>(growing.p999) / static_cast<double>(before.p999));
    worst = std::max(worst, ratio);
    before = after;
  }
  std::printf("worst p99.9 growing / steady: %.2f\n", worst);
  return 0;
}

}  // namespace
}  // namespace kvd::bench

int main(int argc, char** argv) {
  gflags::SetUsageMessage("one-sided GETs while the table grows, and in the steady state");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_value_bytes < 8 || FLAGS_from < 2 || FLAGS_keys <= FLAGS_from || FLAGS_batch < 1 || FLAGS_window_gets < 1000 ||
      FLAGS_steady_windows < 1) {
    std::fprintf(stderr,
                 "growth_benchmark: at least 2 keys to begin with, more at the end, 8 bytes a value, 1 key a batch, 1000 "
                 "GETs a window, 1 window\n");
    return 2;
  }
  return kvd::bench::Main();
}
