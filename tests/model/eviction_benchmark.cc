// How near kvd's eviction comes to an exact LRU of the same size, over Zipf traces.
//
//   bazel run -c opt //tests/model:eviction_benchmark
#include <cinttypes>
#include <cstdio>

#include "tests/model/lru_trace.h"

namespace kvd::test {
namespace {

struct Values {
  const char* name;
  uint64_t min;
  uint64_t max;
  uint64_t keys;
};

void Run() {
  std::printf("%-14s %10s %8s %8s %8s %8s %8s\n", "values", "told", "items", "evicted", "kvd",
              "exact", "points");
  for (const Values& values :
       {Values{"64", 64, 64, 1'000'000}, Values{"1000", 1000, 1000, 200'000},
        Values{"10 to 2000", 10, 2000, 200'000}, Values{"100 to 60000", 100, 60'000, 20'000}}) {
    for (const uint32_t told_one_in : {1u, 8u, 64u, 0u}) {
      TraceOptions options;
      options.keys = values.keys;
      options.value_bytes_min = values.min;
      options.value_bytes_max = values.max;
      options.memory_bytes = 32 << 20;
      options.requests = 3'000'000;
      options.told_one_in = told_one_in;
      const TraceResult result = RunTrace(options);
      char told[16];
      std::snprintf(told, sizeof(told), told_one_in == 0 ? "none" : "1/%u", told_one_in);
      std::printf("%-14s %10s %8" PRIu64 " %8" PRIu64 " %8.4f %8.4f %+8.2f\n", values.name, told,
                  result.items, result.evicted_items, result.hit_ratio, result.exact_hit_ratio,
                  100 * (result.hit_ratio - result.exact_hit_ratio));
    }
  }
}

}  // namespace
}  // namespace kvd::test

int main() { kvd::test::Run(); }
