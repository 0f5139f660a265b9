// How near kvd's eviction comes to an exact LRU of the same size, over Zipf traces.
//
//   bazel run -c opt //tests/model:eviction_benchmark [-- EXPONENT [SEED]]
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "tests/model/lru_trace.h"

namespace kvd::test {
namespace {

struct Values {
  const char* name;
  uint64_t min;
  uint64_t max;
  uint64_t keys;
};

struct ToldName {
  Told told;
  const char* name;
};

void Run(double exponent, uint64_t seed) {
  std::printf("Zipf(%g), seed %" PRIu64 "\n", exponent, seed);
  std::printf("%-14s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "values", "told", "items", "evicted",
              "kvd", "exact", "points", "user_MiB", "unencumb", "put_us");
  for (const Values& values :
       {Values{"64", 64, 64, 1'000'000}, Values{"1000", 1000, 1000, 200'000},
        Values{"10 to 2000", 10, 2000, 200'000}, Values{"100 to 60000", 100, 60'000, 20'000}}) {
    for (const auto& [told, told_name] :
         {ToldName{Told::kAll, "all"}, ToldName{Told::kAsClientsTell, "clients"},
          ToldName{Told::kNone, "none"}}) {
      TraceOptions options;
      options.seed = seed;
      options.exponent = exponent;
      options.keys = values.keys;
      options.value_bytes_min = values.min;
      options.value_bytes_max = values.max;
      options.memory_bytes = 32 << 20;
      options.requests = 3'000'000;
      options.told = told;
      const TraceResult result = RunTrace(options);
      std::printf("%-14s %8s %8" PRIu64 " %8" PRIu64 " %8.4f %8.4f %+8.2f %8.2f %8.4f %8.2f\n",
                  values.name, told_name, result.items, result.evicted_items, result.hit_ratio,
                  result.exact_hit_ratio, 100 * (result.hit_ratio - result.exact_hit_ratio),
                  static_cast<double>(result.user_bytes) / (1 << 20), result.unencumbered_hit_ratio,
                  static_cast<double>(result.evicting_put_ns) / 1e3);
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace kvd::test

int main(int argc, char** argv) {
  kvd::test::Run(argc > 1 ? std::strtod(argv[1], nullptr) : 0.99,
                 argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
}
