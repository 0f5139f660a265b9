// Can the memory be had and pinned?
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/units.h"
#include "common/transport/verbs/local_check_rows.h"

namespace kvd::verbs {
namespace {

constexpr uint64_t kHugepageBytes = 2 * kMiB;

// Of 2 MiB, that a region may be of.
uint64_t FreeHugepages(const LocalFacts& facts, const LocalNeeds& needs) {
  if (needs.numa_node < 0) return facts.hugepages_free;
  for (const NodeHugepages& node : facts.hugepage_nodes) {
    if (node.node == static_cast<uint32_t>(needs.numa_node)) {
      return std::min(node.free, facts.hugepages_free);
    }
  }
  return facts.hugepages_free;  // nobody can tell
}

// Of the kernel's pools, whose pages are no part of the memory that is available otherwise.
bool FitsHugepages(const LocalFacts& facts, const LocalNeeds& needs) {
  return needs.hugepages != HugepageNeed::kNone &&
         (FreeHugepages(facts, needs) >= needs.memory_bytes / kHugepageBytes ||
          facts.gigantic_free > needs.memory_bytes / kGiB);
}

}  // namespace

void CheckMemlock(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results) {
  const uint64_t need_bytes = needs.memory_bytes + needs.buffers_bytes;
  CheckResult result;
  result.check = "locked memory";
  result.found = absl::StrCat("need ", FormatBytes(need_bytes));
  if (facts.memlock_unlimited) {
    absl::StrAppend(&result.found, ", and CAP_IPC_LOCK lifts the limit");
  } else if (facts.memlock_limit_bytes == UINT64_MAX) {
    absl::StrAppend(&result.found, ", RLIMIT_MEMLOCK is unlimited");
  } else {
    absl::StrAppend(&result.found, ", RLIMIT_MEMLOCK is ", FormatBytes(facts.memlock_limit_bytes));
    if (facts.memlock_limit_bytes < need_bytes) {
      result.outcome = Obstacle(needs);
      result.remedy =
          "systemd: LimitMEMLOCK=infinity; shell: ulimit -l unlimited; docker: --ulimit "
          "memlock=-1; Kubernetes: capability IPC_LOCK";
    }
  }
  results.push_back(std::move(result));
}

void CheckRegionSize(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results) {
  for (const DeviceFacts& device : facts.listing.devices) {
    const bool fits = device.max_mr_bytes == 0 || needs.memory_bytes <= device.max_mr_bytes;
    if (device.open_errno != 0 || fits || !IsConsidered(device, needs)) continue;
    results.push_back(
        {absl::StrCat("memory region of ", device.name), Obstacle(needs),
         absl::StrCat("need ", FormatBytes(needs.memory_bytes), ", the device registers at most ",
                      FormatBytes(device.max_mr_bytes), " at once"),
         absl::StrCat("--memory=", device.max_mr_bytes, " or less, or another --device")});
  }
}

CheckResult CheckMemory(const LocalFacts& facts, const LocalNeeds& needs) {
  CheckResult result;
  result.check = "memory";
  result.found = absl::StrCat("need ", FormatBytes(needs.memory_bytes));
  if (facts.memory.total_bytes == 0) return result;  // nobody can tell
  absl::StrAppend(&result.found, ", ", facts.memory.Describe());
  const uint64_t usable = facts.memory.usable_bytes();
  if (needs.memory_bytes <= usable || FitsHugepages(facts, needs)) return result;
  result.outcome = CheckOutcome::kFailed;
  result.remedy = absl::StrCat("--memory=", usable / kMiB, "m or less, or ",
                               usable == facts.memory.available_bytes
                                   ? "a machine with more"
                                   : "raise that limit (docker --memory, systemd MemoryMax)");
  return result;
}

CheckResult CheckHugepages(const LocalFacts& facts, const LocalNeeds& needs) {
  // As the region is made: of 1 GiB pages if it can be of nothing else, and of whole pages.
  const uint64_t gigantic_need = needs.memory_bytes / kGiB;
  const uint64_t need = needs.memory_bytes / kHugepageBytes;
  CheckResult result;
  result.check = "hugepages";
  if (gigantic_need > 0 && needs.memory_bytes % kGiB == 0 && facts.gigantic_free >= gigantic_need) {
    result.found = absl::StrCat("need ", gigantic_need, " x 1 GiB, free ", facts.gigantic_free);
    return result;
  }
  const uint64_t free = FreeHugepages(facts, needs);
  result.found = absl::StrCat(
      "need ", need, " x 2 MiB",
      needs.numa_node < 0 ? "" : absl::StrCat(" on NUMA node ", needs.numa_node), ", free ", free);
  std::vector<std::string> nodes;
  for (const NodeHugepages& node : facts.hugepage_nodes) {
    nodes.push_back(absl::StrCat("node ", node.node, ": ", node.free));
  }
  if (nodes.size() > 1) absl::StrAppend(&result.found, " (", absl::StrJoin(nodes, ", "), ")");
  if (free >= need) return result;
  const bool required = needs.hugepages == HugepageNeed::kRequired;
  result.outcome = required ? CheckOutcome::kFailed : CheckOutcome::kWarning;
  // Those that others use stay theirs.
  if (needs.numa_node >= 0) {
    result.remedy =
        absl::StrCat("write ", need, " to /sys/devices/system/node/node", needs.numa_node,
                     "/hugepages/hugepages-2048kB/nr_hugepages, or --hugepages=off");
    return result;
  }
  const uint64_t pages = facts.hugepages_total + need - facts.hugepages_free;
  result.remedy = absl::StrCat("sysctl vm.nr_hugepages=", pages, " or --hugepages=off");
  return result;
}

}  // namespace kvd::verbs
