// Cache traces: what share of the reads of a trace a store with eviction answers, and what an exact
// LRU of the same size would.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "common/base/random.h"

namespace kvd::test {

// Numbers from [0, keys), number k with a probability proportional to 1 / (k + 1) ^ exponent.
class Zipf {
 public:
  Zipf(uint64_t keys, double exponent);
  uint64_t Next(Random& random) const;

 private:
  std::vector<double> cumulative_;
};

// Exact LRU over items of any size, at most capacity_bytes of them.
class ExactLru {
 public:
  explicit ExactLru(uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // True: `key` is there, and is the youngest now. False: it has been put in, and older ones have
  // gone for it.
  bool Access(uint64_t key, uint64_t bytes);

 private:
  struct Entry {
    uint64_t key;
    uint64_t bytes;
  };
  const uint64_t capacity_bytes_;
  uint64_t bytes_ = 0;
  std::list<Entry> by_age_;  // the youngest first
  std::unordered_map<uint64_t, std::list<Entry>::iterator> by_key_;
};

// Of which hits the server is told.
enum class Told { kAll, kAsClientsTell, kNone };

struct TraceOptions {
  uint64_t seed = 1;
  uint64_t keys = 200'000;
  double exponent = 0.99;
  uint64_t requests = 1'000'000;  // the first half only warms up
  uint64_t value_bytes_min = 64;
  uint64_t value_bytes_max = 64;
  uint64_t memory_bytes = 8 << 20;
  Told told = Told::kAsClientsTell;
};

struct TraceResult {
  uint64_t items = 0;       // in the store, in the end
  uint64_t user_bytes = 0;  // of keys and values, on average over the second half
  uint64_t evicted_items = 0;
  uint64_t evicting_put_ns = 0;       // CPU time of a PUT in the second half
  double hit_ratio = 0;               // of the store
  double exact_hit_ratio = 0;         // of an exact LRU with as many user bytes
  double unencumbered_hit_ratio = 0;  // of one that fills all of the memory with user bytes
};

// Reads key after key; puts those that are missing. Aborts where a put fails or the store is not
// whole at the end.
TraceResult RunTrace(const TraceOptions& options);

}  // namespace kvd::test
