// The client library's counters as a list.
#pragma once

#include <cstdint>
#include <string_view>

#include "client/kv_client.h"

namespace kvd::bench {

struct CounterField {
  std::string_view name;
  uint64_t ClientCounters::*field;
};

inline constexpr CounterField kCounterFields[] = {
    {"gets", &ClientCounters::gets},
    {"hits", &ClientCounters::hits},
    {"misses", &ClientCounters::misses},
    {"reads", &ClientCounters::reads},
    {"read_bytes", &ClientCounters::read_bytes},
    {"read_chains", &ClientCounters::read_chains},
    {"torn_reads", &ClientCounters::torn_reads},
    {"moved_items", &ClientCounters::moved_items},
    {"redirects", &ClientCounters::redirects},
    {"confirmations", &ClientCounters::confirmations},
    {"location_hits", &ClientCounters::location_hits},
    {"stale_locations", &ClientCounters::stale_locations},
    {"gets_by_request", &ClientCounters::gets_by_request},
    {"expired", &ClientCounters::expired},
    {"requests", &ClientCounters::requests},
    {"repeated", &ClientCounters::repeated},
    {"reconnects", &ClientCounters::reconnects},
    {"read_errors", &ClientCounters::read_errors},
};

// A counter that is missing above would be lost in sums.
static_assert(sizeof(ClientCounters) ==
              sizeof(uint64_t) * (sizeof(kCounterFields) / sizeof(CounterField)));

inline ClientCounters Difference(const ClientCounters& after, const ClientCounters& before) {
  ClientCounters difference;
  for (const CounterField& counter : kCounterFields) {
    difference.*counter.field = after.*counter.field - before.*counter.field;
  }
  return difference;
}

inline void AddTo(ClientCounters& sum, const ClientCounters& more) {
  for (const CounterField& counter : kCounterFields) sum.*counter.field += more.*counter.field;
}

}  // namespace kvd::bench
