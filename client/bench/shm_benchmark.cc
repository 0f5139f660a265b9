// One-sided GETs from shared memory, side by side with a hash map in this very process.
//
//   bazel run --config=opt //client/bench:shm_benchmark -- --server=shm:/run/kvd/kvd.sock
//
// Loads --keys items into the kvd at --server, puts the same items into an absl::flat_hash_map<std::string, std::string>, and
// runs both alternately --runs times. Prints medians of the runs and their ratios; --json for machines.
#include <gflags/gflags.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/bench/dataset.h"
#include "client/kv_client.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/string_view.h"

DEFINE_string(server, "", "kvd to measure: shm:PATH; empty: the default socket");
DEFINE_uint64(keys, 1'000'000, "items");
DEFINE_uint64(value_bytes, 64, "bytes per value, at least 8");
DEFINE_uint64(gets, 1'000'000, "GETs per run and store");
DEFINE_uint64(cpu_gets, 10'000'000, "GETs over which kvd's processor time is watched");
DEFINE_uint64(puts, 100'000, "PUTs per run");
DEFINE_int32(runs, 5, "runs; medians are printed");
DEFINE_uint64(seed, 1, "seed of the key order");
DEFINE_bool(json, false, "print one JSON object instead of a table");

namespace kvd::bench {
namespace {

using Map = absl::flat_hash_map<std::string, std::string>;

[[noreturn]] void Die(const std::string& what, const absl::Status& status) {
  std::fprintf(stderr, "shm_benchmark: %s: %s\n", what.c_str(), status.ToString().c_str());
  std::exit(1);
}

// Nanoseconds per call of `body`, which does `count` of them.
double Time(uint64_t count, const std::function<void()>& body) {
  const int64_t begin_ns = RealClock::Get().NowMonotonicNs();
  body();
  return static_cast<double>(RealClock::Get().NowMonotonicNs() - begin_ns) / static_cast<double>(count);
}

double Median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

uint64_t Stat(Client& client, std::string_view name) {
  auto stats = client.Stats();
  if (!stats.ok()) Die("stat", stats.status());
  for (const auto& [key, value] : *stats) {
    if (key == name) return std::strtoull(value.c_str(), nullptr, 10);
  }
  Die(std::string(name), absl::NotFoundError("kvd has no such statistic"));
}

uint64_t ServerCpuUs(Client& client) { return Stat(client, "cpu_user_us") + Stat(client, "cpu_system_us"); }

struct Stores {
  Client& client;
  const Map& map;
  const Dataset& data;

  void GetKvd(uint64_t n, std::string& value) const {
    if (absl::Status status = client.Get(Key(n).view(), value); !status.ok()) Die("get", status);
  }
  void GetMap(uint64_t n, std::string& value) const {
    const auto found = map.find(ToAbsl(Key(n).view()));
    if (found == map.end()) Die("map", absl::NotFoundError("key"));
    value.assign(found->second);
  }
};

// The key of each GET is in the value of the one before: what is measured is latency.
template <typename Get>
double Chain(uint64_t gets, uint64_t& start, const Get& get) {
  std::string value;
  return Time(gets, [&] {
    uint64_t n = start;
    for (uint64_t i = 0; i < gets; ++i) {
      get(n, value);
      n = Dataset::NextIn(value);
    }
    start = n;
  });
}

// Keys are known beforehand: what is measured is how much the processor overlaps.
template <typename Get>
double Independent(uint64_t gets, uint64_t keys, uint64_t seed, const Get& get) {
  std::string value;
  uint64_t sum = 0;
  const double ns = Time(gets, [&] {
    Random random(seed);
    for (uint64_t i = 0; i < gets; ++i) {
      get(random.Uniform(keys), value);
      sum += static_cast<unsigned char>(value.back());
    }
  });
  if (sum == 1) std::fputs("", stderr);  // the values are used
  return ns;
}

// In batches of keys known beforehand; per key.
double Batches(Client& client, uint64_t gets, uint64_t keys, uint64_t seed) {
  constexpr size_t kBatch = 64;
  std::vector<Key> batch(kBatch, Key(0));
  std::vector<std::string_view> views;
  for (const Key& key : batch) views.push_back(key.view());
  std::vector<GetResult> results(kBatch);
  Random random(seed);
  return Time(gets / kBatch * kBatch, [&] {
    for (uint64_t done = 0; done + kBatch <= gets; done += kBatch) {
      for (Key& key : batch) key = Key(random.Uniform(keys));
      if (auto status = client.MultiGet(views, results); !status.ok()) Die("mget", status);
      for (const GetResult& result : results) {
        if (!result.status.ok()) Die("mget", result.status);
      }
    }
  });
}

// A value of 4 MiB into a buffer, against a copy and a checksum of as many bytes: what cannot be done without.
double LargeGetRatio(Client& client) {
  constexpr size_t kBytes = size_t{4} << 20;
  const Buffer buffer = [&] {
    auto made = client.AllocateBuffer(kBytes);
    if (!made.ok()) Die("buffer", made.status());
    return *std::move(made);
  }();
  std::vector<char> from(kBytes, 'x');
  std::vector<char> to(kBytes, 'y');
  std::memcpy(buffer.data(), from.data(), kBytes);
  if (auto put = client.PutFrom("large", buffer, kBytes); !put.ok()) Die("put 4 MiB", put.status());
  std::vector<double> ratios;
  uint64_t sum = 0;
  for (int run = 0; run < 41; ++run) {
    const double get_ns = Time(10, [&] {
      for (int i = 0; i < 10; ++i) {
        if (auto got = client.GetInto("large", buffer); !got.ok()) Die("get 4 MiB", got.status());
      }
    });
    const double floor_ns = Time(10, [&] {
      for (int i = 0; i < 10; ++i) {
        std::memcpy(to.data(), from.data(), kBytes);
        sum += Checksum64(to.data(), kBytes, 0);
      }
    });
    ratios.push_back(get_ns / floor_ns);
  }
  if (sum == 1) std::fputs("", stderr);
  if (auto deleted = client.Delete("large"); !deleted.ok()) Die("delete", deleted);
  return Median(ratios);
}

void Load(Client& client, Map& map, const Dataset& data) {
  std::string value;
  map.reserve(data.keys());
  for (uint64_t n = 0; n < data.keys(); ++n) {
    data.FillValue(n, value);
    if (auto put = client.Put(Key(n).view(), value); !put.ok()) Die("load", put.status());
    map.emplace(std::string(Key(n).view()), value);
  }
}

struct Result {
  const char* name;
  double value;
  const char* unit;
};

double ReadsPerGet(const Dataset& data) {
  ClientOptions options;
  options.read_whole_buckets = true;
  options.name = "shm_benchmark";
  auto client = Client::Connect(FLAGS_server, options);
  if (!client.ok()) Die("connect", client.status());
  Random random(FLAGS_seed + 7);
  std::string value;
  const uint64_t gets = std::min<uint64_t>(data.keys(), 1'000'000);
  for (uint64_t i = 0; i < gets / 10; ++i) static_cast<void>((*client)->Get(Key(random.Uniform(data.keys())).view(), value));
  const uint64_t warm = (*client)->counters().reads;
  for (uint64_t i = 0; i < gets; ++i) {
    if (auto status = (*client)->Get(Key(random.Uniform(data.keys())).view(), value); !status.ok()) Die("get", status);
  }
  return static_cast<double>((*client)->counters().reads - warm) / static_cast<double>(gets);
}

double ReadsPerMiss(const Dataset& data) {
  ClientOptions options;
  options.read_whole_buckets = true;
  auto client = Client::Connect(FLAGS_server, options);
  if (!client.ok()) Die("connect", client.status());
  std::string value;
  const uint64_t misses = 200'000;
  uint64_t warm = 0;
  for (uint64_t i = 0; i < 2 * misses; ++i) {
    if (i == misses) warm = (*client)->counters().reads;
    if ((*client)->Get(Key(data.keys() + i).view(), value).ok()) Die("miss", absl::InternalError("found"));
  }
  return static_cast<double>((*client)->counters().reads - warm) / static_cast<double>(misses);
}

void Print(const std::vector<Result>& results) {
  if (FLAGS_json) {
    std::printf("{\"keys\": %lu, \"value_bytes\": %lu, \"runs\": %d", FLAGS_keys, FLAGS_value_bytes, FLAGS_runs);
    for (const Result& result : results) std::printf(", \"%s\": %.4g", result.name, result.value);
    std::printf("}\n");
    return;
  }
  std::printf("%lu keys of 8 + %lu bytes, medians of %d runs\n", FLAGS_keys, FLAGS_value_bytes, FLAGS_runs);
  for (const Result& result : results) std::printf("  %-40s %12.4g %s\n", result.name, result.value, result.unit);
}

int Main() {
  const Dataset data(FLAGS_keys, FLAGS_value_bytes, FLAGS_seed);
  auto connected = Client::Connect(FLAGS_server);
  if (!connected.ok()) Die("connect", connected.status());
  Client& client = **connected;
  Map map;
  Load(client, map, data);
  const Stores stores{client, map, data};
  const auto kvd_get = [&](uint64_t n, std::string& value) { stores.GetKvd(n, value); };
  const auto map_get = [&](uint64_t n, std::string& value) { stores.GetMap(n, value); };

  std::vector<double> kvd_chain, map_chain, kvd_free, map_free, chain_ratio, free_ratio, puts, batches, batch_ratio;
  uint64_t kvd_at = 0;
  uint64_t map_at = 0;
  for (int run = 0; run < FLAGS_runs; ++run) {
    kvd_chain.push_back(Chain(FLAGS_gets, kvd_at, kvd_get));
    map_chain.push_back(Chain(FLAGS_gets, map_at, map_get));
    chain_ratio.push_back(kvd_chain.back() / map_chain.back());
    const uint64_t seed = FLAGS_seed + static_cast<uint64_t>(run) + 100;
    kvd_free.push_back(Independent(FLAGS_gets, data.keys(), seed, kvd_get));
    map_free.push_back(Independent(FLAGS_gets, data.keys(), seed, map_get));
    free_ratio.push_back(kvd_free.back() / map_free.back());
    batches.push_back(Batches(client, FLAGS_gets, data.keys(), seed));
    batch_ratio.push_back(batches.back() / map_free.back());
  }

  const uint64_t cpu_before = ServerCpuUs(client);
  Independent(FLAGS_cpu_gets, data.keys(), FLAGS_seed, kvd_get);
  const uint64_t cpu_after = ServerCpuUs(client);

  std::string value;
  for (int run = 0; run < FLAGS_runs; ++run) {
    Random random(FLAGS_seed + static_cast<uint64_t>(run));
    puts.push_back(Time(FLAGS_puts, [&] {
      for (uint64_t i = 0; i < FLAGS_puts; ++i) {
        const uint64_t n = random.Uniform(data.keys());
        data.FillValue(n, value);
        if (auto put = client.Put(Key(n).view(), value); !put.ok()) Die("put", put.status());
      }
    }));
  }

  const double user_bytes = static_cast<double>(Stat(client, "user_bytes"));
  const double used = static_cast<double>(Stat(client, "memory_bytes") - Stat(client, "free_bytes"));
  const double region = static_cast<double>(Stat(client, "memory_bytes"));
  Print({
      {"get_chain_kvd", Median(kvd_chain), "ns"},
      {"get_chain_flat_hash_map", Median(map_chain), "ns"},
      {"get_chain_ratio", Median(chain_ratio), "kvd / map"},
      {"get_independent_kvd", Median(kvd_free), "ns"},
      {"get_independent_flat_hash_map", Median(map_free), "ns"},
      {"get_independent_ratio", Median(free_ratio), "kvd / map"},
      {"mget_64_per_key_kvd", Median(batches), "ns"},
      {"mget_64_per_key_ratio", Median(batch_ratio), "kvd / map, independent"},
      {"get_into_4_mib_ratio", LargeGetRatio(client), "kvd / (memcpy + checksum)"},
      {"reads_per_get", ReadsPerGet(data), "as over RDMA, location unknown"},
      {"reads_per_miss", ReadsPerMiss(data), "as over RDMA"},
      {"user_bytes_per_region_byte_in_use", user_bytes / used, ""},
      {"user_bytes_per_region_byte", user_bytes / region, ""},
      {"put_round_trip", Median(puts), "ns"},
      {"kvd_cpu_over_gets", static_cast<double>(cpu_after - cpu_before), "us, of which two STAT requests"},
      {"kvd_cpu_over_gets_count", static_cast<double>(FLAGS_cpu_gets), "GETs"},
  });
  return 0;
}

}  // namespace
}  // namespace kvd::bench

int main(int argc, char** argv) {
  gflags::SetUsageMessage("measures one-sided GETs from shared memory against a hash map in the same process");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  if (FLAGS_value_bytes < 8 || FLAGS_keys < 2 || FLAGS_runs < 1) {
    std::fprintf(stderr, "shm_benchmark: at least 2 keys, 8 bytes a value and 1 run\n");
    return 2;
  }
  return kvd::bench::Main();
}
