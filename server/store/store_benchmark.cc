// What the store costs in memory, READs and time, over growing numbers of small items.
//
//   bazel run -c opt //server/store:store_benchmark [-- --max_items=4000000 --key_bytes=8
//   --value_bytes=64 --bucket_bytes=1024]
//
// Each line is one number of items, all in one store that grows on: user bytes per region byte in
// use (segments of buckets and pages of the heap), READs that a cold GET and a miss take on
// average, computed from the index, how far the table is in its present doubling, and what PUTs
// cost since the line before, splits included and apart.
//
// With --memory the same store is filled until a PUT is refused, which the last line shows.
#include <gflags/gflags.h>

#include <algorithm>
#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <string>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/units.h"
#include "server/store/shard.h"

DEFINE_uint64(max_items, 4'000'000, "items in the end");
DEFINE_uint64(key_bytes, 8, "bytes of a key, at least 8");
DEFINE_uint64(value_bytes, 64, "bytes of a value");
DEFINE_uint32(bucket_bytes, 1024, "bytes of a bucket: 512, 1024, 2048 or 4096");
DEFINE_uint64(memory, 0, "bytes of the region; 0: as many as --max_items need");
DEFINE_uint64(lines_per_doubling, 8, "lines printed while the number of items doubles");

namespace kvd {
namespace {

std::string KeyOf(uint64_t number) {
  std::string key(FLAGS_key_bytes, 'k');
  const uint64_t mixed = Mix64(number);
  key.replace(0, sizeof(mixed), reinterpret_cast<const char*>(&mixed), sizeof(mixed));
  return key;
}

struct Line {
  uint64_t items;
  int64_t put_ns;
  int64_t split_ns;
  uint64_t splits;
  uint64_t puts;
};

void Print(const Shard& shard, const Line& line) {
  const ShardStats stats = shard.stats();
  const ReadCost cost = shard.MeasureReads();
  const uint64_t used = stats.index_bytes + stats.heap_bytes;
  std::printf(
      "%9" PRIu64 " %8.3f %10.3f %9.3f %10.3f %9.3f %9" PRIu64 " %8" PRIu64 " %7.0f %8.0f\n",
      line.items,
      static_cast<double>(stats.buckets) / static_cast<double>(std::bit_floor(stats.buckets)),
      static_cast<double>(stats.user_bytes) / static_cast<double>(used),
      static_cast<double>(cost.reads) / static_cast<double>(cost.items), cost.reads_per_miss,
      static_cast<double>(stats.local_items) / static_cast<double>(stats.items), stats.buckets,
      stats.overflow_headers, static_cast<double>(line.put_ns) / static_cast<double>(line.puts),
      line.splits == 0 ? 0.0
                       : static_cast<double>(line.split_ns) / static_cast<double>(line.splits));
}

int Run() {
  const Clock& clock = RealClock::Get();
  const uint64_t memory =
      FLAGS_memory != 0
          ? FLAGS_memory
          : FLAGS_max_items * (FLAGS_key_bytes + FLAGS_value_bytes + 64) * 3 + 64 * kMiB;
  auto region = Region::Create(
      {.memory_bytes = memory / kMiB * kMiB, .bucket_bytes = FLAGS_bucket_bytes, .progress = {}});
  if (!region.ok()) {
    std::fprintf(stderr, "store_benchmark: %s\n", std::string(region.status().message()).c_str());
    return 1;
  }
  auto shard = *Shard::Create(**region, 0, clock);
  const std::string value(FLAGS_value_bytes, 'v');
  const uint64_t seed = (*region)->geometry().hash_seed();
  std::printf(
      "    items doubling user/region reads/GET reads/miss local/all   buckets overflow put [ns] "
      "split [ns]\n");
  double next = 10'000;
  Line line{};
  uint64_t splits_before = 0;
  while (line.items < FLAGS_max_items) {
    const uint64_t target = std::min(static_cast<uint64_t>(next), FLAGS_max_items);
    next *= std::exp2(1.0 / static_cast<double>(FLAGS_lines_per_doubling));
    line.put_ns = line.split_ns = 0;
    line.puts = target - line.items;
    while (line.items < target) {
      // As a poller does: a batch of requests, then deferred work.
      const uint64_t batch_end = std::min(target, line.items + 32);
      const int64_t begin_ns = clock.NowMonotonicNs();
      shard->RefreshClock();
      for (; line.items < batch_end; ++line.items) {
        const std::string key = KeyOf(line.items);
        if (shard->Put(key, HashKey(key, seed), value).status != StoreStatus::kOk) {
          line.puts -= target - line.items;
          Print(*shard, line);
          std::printf("refused: %.3f user bytes per byte of the region, %" PRIu64
                      " places borrowed\n",
                      static_cast<double>(shard->stats().user_bytes) / static_cast<double>(memory),
                      shard->stats().borrowed_places);
          return 0;
        }
      }
      const int64_t work_ns = clock.NowMonotonicNs();
      while (shard->Work()) {
      }
      line.split_ns += clock.NowMonotonicNs() - work_ns;
      line.put_ns += clock.NowMonotonicNs() - begin_ns;
    }
    line.splits = shard->stats().splits - splits_before;
    splits_before += line.splits;
    Print(*shard, line);
  }
  return 0;
}

}  // namespace
}  // namespace kvd

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return kvd::Run();
}
