// How long one operation takes: percentiles of GETs and PUTs, one at a time.
//
//   bazel run --config=opt //client/bench:latency_benchmark -- --server=rdma:10.0.0.1:7711
//   ... --memcached=10.0.0.1:11211        the same GETs and PUTs of a memcached over TCP, to compare with
//
// Ratios to a floor measured in the same run (ib_read_lat of a bucket's bytes, twice ib_send_lat) are what counts.
#include <arpa/inet.h>
#include <gflags/gflags.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/bench/dataset.h"
#include "client/kv_client.h"
#include "common/base/clock.h"

DEFINE_string(server, "", "kvd to measure; empty: the default socket");
DEFINE_string(memcached, "", "measure the memcached at IPV4:PORT instead");
DEFINE_uint64(keys, 1000, "items");
DEFINE_uint64(value_bytes, 64, "bytes per value, at least 8");
DEFINE_uint64(operations, 5000, "of each kind");

namespace kvd::bench {
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "latency_benchmark: %s\n", what.c_str());
  std::exit(1);
}

// Runs `operation(n)` for random keys and prints percentiles of its time.
void Measure(const char* name, const std::function<void(uint64_t)>& operation) {
  Random random(1);
  std::vector<int64_t> samples_ns;
  for (uint64_t i = 0; i < FLAGS_operations / 10; ++i) operation(random.Uniform(FLAGS_keys));
  for (uint64_t i = 0; i < FLAGS_operations; ++i) {
    const uint64_t n = random.Uniform(FLAGS_keys);
    const int64_t begin_ns = RealClock::Get().NowMonotonicNs();
    operation(n);
    samples_ns.push_back(RealClock::Get().NowMonotonicNs() - begin_ns);
  }
  std::sort(samples_ns.begin(), samples_ns.end());
  const auto percentile = [&](double part) {
    return static_cast<double>(samples_ns[static_cast<size_t>(part * static_cast<double>(samples_ns.size() - 1))]) / 1e3;
  };
  std::printf("%-22s p50 %9.2f us  p90 %9.2f us  p99 %9.2f us  min %9.2f us\n", name, percentile(0.5), percentile(0.9),
              percentile(0.99), percentile(0));
}

std::unique_ptr<Client> ConnectOrDie(const ClientOptions& options) {
  auto client = Client::Connect(FLAGS_server, options);
  if (!client.ok()) Die(std::string(client.status().message()));
  return *std::move(client);
}

// Rate of GETs in batches of 64, with READs and doorbells for each key.
void MeasureBatches(const char* name, Client& client) {
  constexpr size_t kBatch = 64;
  std::vector<Key> batch(kBatch, Key(0));
  std::vector<std::string_view> views;
  for (const Key& key : batch) views.push_back(key.view());
  std::vector<GetResult> results(kBatch);
  Random random(2);
  const ClientCounters before = client.counters();
  const uint64_t batches = FLAGS_operations / kBatch + 1;
  const int64_t begin_ns = RealClock::Get().NowMonotonicNs();
  for (uint64_t i = 0; i < batches; ++i) {
    for (Key& key : batch) key = Key(random.Uniform(FLAGS_keys));
    if (!client.MultiGet(views, results).ok()) Die("mget");
    for (const GetResult& result : results) {
      if (!result.status.ok()) Die("mget: " + std::string(result.status.message()));
    }
  }
  const double keys = static_cast<double>(batches * kBatch);
  const double seconds = static_cast<double>(RealClock::Get().NowMonotonicNs() - begin_ns) / 1e9;
  const ClientCounters after = client.counters();
  std::printf("%-22s %9.0f keys/s  %.3f READs, %.3f doorbells and %.0f bytes a key\n", name, keys / seconds,
              static_cast<double>(after.reads - before.reads) / keys,
              static_cast<double>(after.read_chains - before.read_chains) / keys,
              static_cast<double>(after.read_bytes - before.read_bytes) / keys);
}

void MeasureKvd() {
  const Dataset data(FLAGS_keys, FLAGS_value_bytes, 1);
  std::string value;
  const auto put = [&](Client& client, uint64_t n) {
    data.FillValue(n, value);
    const auto done = client.Put(Key(n).view(), value);
    if (!done.ok()) Die("put: " + std::string(done.status().message()));
  };
  const auto get = [&](Client& client, uint64_t n) {
    const absl::Status done = client.Get(Key(n).view(), value);
    if (!done.ok()) Die("get: " + std::string(done.message()));
  };
  const auto cold = ConnectOrDie({});
  ClientOptions remembering;
  remembering.location_cache_entries = static_cast<uint32_t>(FLAGS_keys * 8);
  const auto warm = ConnectOrDie(remembering);
  for (uint64_t n = 0; n < FLAGS_keys; ++n) put(*cold, n);
  for (uint64_t n = 0; n < FLAGS_keys; ++n) get(*warm, n);
  const uint64_t reads = cold->counters().reads;
  Measure("kvd GET, cold", [&](uint64_t n) { get(*cold, n); });
  const uint64_t gets = FLAGS_operations + FLAGS_operations / 10;
  const double reads_per_get = static_cast<double>(cold->counters().reads - reads) / static_cast<double>(gets);
  Measure("kvd GET, known place", [&](uint64_t n) { get(*warm, n); });
  MeasureBatches("kvd MGET 64, cold", *cold);
  MeasureBatches("kvd MGET 64, known", *warm);
  Measure("kvd PUT", [&](uint64_t n) { put(*cold, n); });
  std::printf("%-22s %.3f\n", "READs per cold GET", reads_per_get);
}

// The text protocol, over one connection.
class Memcached {
 public:
  explicit Memcached(const std::string& place) {
    const size_t colon = place.rfind(':');
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::atoi(place.c_str() + colon + 1)));
    if (colon == std::string::npos || inet_pton(AF_INET, place.substr(0, colon).c_str(), &address.sin_addr) != 1) {
      Die("--memcached is IPV4:PORT");
    }
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) Die("no memcached there");
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~Memcached() { close(socket_); }

  // Sends a command and reads until `end` is at the end of what came.
  void Call(const std::string& command, const char* end) {
    if (write(socket_, command.data(), command.size()) != static_cast<ssize_t>(command.size())) Die("memcached is gone");
    std::string reply;
    while (!reply.ends_with(end)) {
      char bytes[65536];
      const ssize_t count = read(socket_, bytes, sizeof(bytes));
      if (count <= 0) Die("memcached is gone");
      reply.append(bytes, static_cast<size_t>(count));
    }
  }

 private:
  int socket_ = -1;
};

void MeasureMemcached() {
  Memcached memcached(FLAGS_memcached);
  const std::string value(FLAGS_value_bytes, 'v');
  const auto key = [](uint64_t n) { return "k" + std::to_string(10'000'000 + n % 10'000'000).substr(1); };
  const auto set = [&](uint64_t n) {
    memcached.Call("set " + key(n) + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n", "STORED\r\n");
  };
  for (uint64_t n = 0; n < FLAGS_keys; ++n) set(n);
  Measure("memcached get", [&](uint64_t n) { memcached.Call("get " + key(n) + "\r\n", "END\r\n"); });
  Measure("memcached set", set);
}

}  // namespace
}  // namespace kvd::bench

int main(int argc, char** argv) {
  gflags::SetUsageMessage("percentiles of single GETs and PUTs");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_value_bytes < 8 || FLAGS_keys < 2 || FLAGS_operations < 10) {
    std::fprintf(stderr, "latency_benchmark: at least 2 keys, 8 bytes a value and 10 operations\n");
    return 2;
  }
  if (FLAGS_memcached.empty()) {
    kvd::bench::MeasureKvd();
  } else {
    kvd::bench::MeasureMemcached();
  }
  return 0;
}
