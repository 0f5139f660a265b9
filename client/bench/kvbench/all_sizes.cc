#include "client/bench/kvbench/all_sizes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/units.h"

namespace kvd::bench {
namespace {

constexpr uint64_t kSizeMax = kMiB;
constexpr uint64_t kValueBytesMax = 32 * kMiB;
constexpr uint64_t kKeysMin = 16;

// Of one item, with its part of the index and what lies idle around it: for small ones twice their
// bytes, for large ones a fifth more.
uint64_t MemoryOf(uint64_t item_bytes) { return item_bytes + item_bytes / 5 + 72; }

// A run's keys are the first ones of those of the run before, so each key keeps the value of the
// last run that has it. An eighth more, since memory that small values leave is not in one piece,
// and a value lies beside the one that it replaces.
uint64_t MemoryOf(const std::vector<Workload>& runs) {
  uint64_t most = 0;
  uint64_t left_behind = 0;  // keys of earlier runs that this one has not
  for (size_t i = 0; i < runs.size(); ++i) {
    const Workload& run = runs[i];
    const uint64_t each = MemoryOf(run.key_size + run.value_sizes.max());
    most = std::max(most, left_behind + run.keys * each);
    const uint64_t keys_next = i + 1 < runs.size() ? runs[i + 1].keys : 0;
    left_behind += (run.keys - keys_next) * each;
  }
  return most + most / 8;
}

SizesPlan PlanWith(const Workload& work, uint64_t value_bytes) {
  SizesPlan plan;
  plan.value_bytes = value_bytes;
  for (uint64_t size = 2; size <= kSizeMax; size *= 2) {
    Workload run = work;
    run.value_sizes = ValueSizes::Fixed(size);
    run.keys = std::min(work.keys, std::max(value_bytes / size, kKeysMin));
    plan.runs.push_back(std::move(run));
  }
  plan.memory_bytes = MemoryOf(plan.runs);
  return plan;
}

}  // namespace

absl::StatusOr<SizesPlan> PlanAllSizes(const Workload& work, uint64_t memory_bytes) {
  SizesPlan plan = PlanWith(work, kValueBytesMax);
  if (memory_bytes == 0) return plan;
  while (plan.memory_bytes > memory_bytes && plan.value_bytes > 1) {
    plan = PlanWith(work, plan.value_bytes / 2);
  }
  if (plan.memory_bytes <= memory_bytes) return plan;
  return absl::ResourceExhaustedError(absl::StrCat("needs about ", FormatBytes(plan.memory_bytes),
                                                   " and this kvd has ", FormatBytes(memory_bytes),
                                                   "; start kvd with a larger --memory"));
}

}  // namespace kvd::bench
