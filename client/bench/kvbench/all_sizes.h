// The runs of --all: one for each size of value, from 2 bytes to 1 MiB, doubling.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/kvbench/options.h"

namespace kvd::bench {

struct SizesPlan {
  std::vector<Workload> runs;
  uint64_t value_bytes = 0;   // of each size at most, but for the largest sizes' few keys
  uint64_t memory_bytes = 0;  // that a kvd needs for them, roughly; they lie there together
};

// As many of `work`'s keys for each size as 32 MiB of values make, or as fit into a kvd with
// `memory_bytes` of memory; 0: unknown, and no limit. ResourceExhausted: not even 16 keys do, and
// how much memory it takes.
absl::StatusOr<SizesPlan> PlanAllSizes(const Workload& work, uint64_t memory_bytes);

}  // namespace kvd::bench
