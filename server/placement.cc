#include "server/placement.h"

#include <numa.h>
#include <sched.h>

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/machine_memory.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd {
namespace {

constexpr int kCpuMax = 1 << 16;

absl::Status BadList() {
  return absl::InvalidArgumentError("a list of processors such as 0,2,4-6, each once");
}

const NumaFacts::Node* NodeOf(const NumaFacts& facts, int id) {
  const auto found = std::find_if(facts.nodes.begin(), facts.nodes.end(),
                                  [id](const NumaFacts::Node& node) { return node.id == id; });
  return found == facts.nodes.end() ? nullptr : &*found;
}

std::string NodesText(const NumaFacts& facts) {
  std::vector<int> ids;
  for (const NumaFacts::Node& node : facts.nodes) ids.push_back(node.id);
  return CpuListText(ids);
}

absl::StatusOr<int> ChooseNode(const PlacementWish& wish, const NumaFacts& facts) {
  if (wish.node == PlacementWish::kOff) return -1;
  if (wish.node >= 0) {
    if (NodeOf(facts, wish.node) != nullptr) return wish.node;
    return absl::InvalidArgumentError(
        absl::StrCat("--numa_node=", wish.node, " is not there; this machine has ",
                     facts.nodes.empty() ? "none that the kernel tells of" : NodesText(facts)));
  }
  const bool several = facts.nodes.size() > 1;
  return several && NodeOf(facts, facts.device_node) != nullptr ? facts.device_node : -1;
}

absl::Status PlacePollers(const PlacementWish& wish, const NumaFacts& facts, Placement& placement) {
  if (wish.poller_cpus.empty()) {
    const NumaFacts::Node* const node = NodeOf(facts, placement.node);
    if (node == nullptr) return absl::OkStatus();
    if (node->cpus.empty()) {
      placement.warnings.push_back(
          absl::StrCat("this process may run on none of node ", node->id,
                       "'s processors (cpuset, taskset): pollers will run on another node than the "
                       "region"));
      return absl::OkStatus();
    }
    placement.poller_cpus.assign(wish.pollers, node->cpus);
    return absl::OkStatus();
  }
  if (wish.poller_cpus.size() < wish.pollers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--poller_cpus=", CpuListText(wish.poller_cpus), " has ", wish.poller_cpus.size(),
        " processors for --pollers=", wish.pollers, "; name one for each"));
  }
  for (uint32_t i = 0; i < wish.pollers; ++i) {
    const int cpu = wish.poller_cpus[i];
    if (std::find(facts.allowed.begin(), facts.allowed.end(), cpu) == facts.allowed.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--poller_cpus: processor ", cpu,
          " is not there, or not allowed to this process, which has ", CpuListText(facts.allowed)));
    }
    placement.poller_cpus.push_back({cpu});
  }
  return absl::OkStatus();
}

// What will be slower than it has to be.
void Warn(const PlacementWish& wish, const NumaFacts& facts, Placement& placement) {
  const NumaFacts::Node* const node = NodeOf(facts, placement.node);
  if (node == nullptr) return;
  if (facts.device_node >= 0 && facts.device_node != node->id) {
    placement.warnings.push_back(absl::StrCat("RDMA device ", facts.device, " is at node ",
                                              facts.device_node, " and the region at node ",
                                              node->id, ": READs cross between them"));
  }
  if (node->bytes != 0 && wish.memory_bytes > node->bytes) {
    placement.warnings.push_back(
        absl::StrCat("node ", node->id, " has ", FormatBytes(node->bytes),
                     " for --memory=", FormatBytes(wish.memory_bytes),
                     ": the rest comes from others; run a kvd on each node, or "
                     "take memory evenly with --numa_node=off"));
  }
  for (const std::vector<int>& cpus : placement.poller_cpus) {
    const bool elsewhere = std::any_of(cpus.begin(), cpus.end(), [node](int cpu) {
      return std::find(node->cpus.begin(), node->cpus.end(), cpu) == node->cpus.end();
    });
    if (!elsewhere) continue;
    placement.warnings.push_back(absl::StrCat("processor ", CpuListText(cpus),
                                              " is at another node than the region, ", node->id));
    return;
  }
}

}  // namespace

absl::StatusOr<Placement> Place(const PlacementWish& wish, const NumaFacts& facts) {
  Placement placement;
  KVD_ASSIGN_OR_RETURN(placement.node, ChooseNode(wish, facts));
  placement.strict = wish.node >= 0;
  KVD_RETURN_IF_ERROR(PlacePollers(wish, facts, placement));
  Warn(wish, facts, placement);
  return placement;
}

std::string Describe(const Placement& placement) {
  std::string text = placement.node < 0 ? "wherever the kernel likes"
                                        : absl::StrCat("region on node ", placement.node);
  if (placement.poller_cpus.empty()) return text;
  std::set<int> cpus;
  for (const std::vector<int>& each : placement.poller_cpus) cpus.insert(each.begin(), each.end());
  absl::StrAppend(&text, ", pollers on processors ",
                  CpuListText(std::vector<int>(cpus.begin(), cpus.end())));
  return text;
}

absl::StatusOr<std::vector<int>> ParseCpuList(const std::string& text) {
  std::vector<int> cpus;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) return BadList();
    int last = first;
    if (part.find('-') != absl::string_view::npos && !absl::SimpleAtoi(ends.second, &last)) {
      return BadList();
    }
    if (first < 0 || last < first || last >= kCpuMax) return BadList();
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  if (std::set<int>(cpus.begin(), cpus.end()).size() != cpus.size()) return BadList();
  return cpus;
}

std::string CpuListText(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ",", cpus[i]);
    if (end - i > 1) absl::StrAppend(&text, "-", cpus[end - 1]);
    i = end;
  }
  return text;
}

NumaFacts GatherNumaFacts() {
  NumaFacts facts;
  cpu_set_t* const set = CPU_ALLOC(kCpuMax);
  if (set != nullptr && sched_getaffinity(0, CPU_ALLOC_SIZE(kCpuMax), set) == 0) {
    for (int cpu = 0; cpu < kCpuMax; ++cpu) {
      if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(kCpuMax), set)) facts.allowed.push_back(cpu);
    }
  }
  if (set != nullptr) CPU_FREE(set);
  if (numa_available() >= 0) {
    for (int id = 0; id <= numa_max_node(); ++id) {
      if (numa_bitmask_isbitset(numa_nodes_ptr, static_cast<unsigned>(id)) == 0) continue;
      NumaFacts::Node node{.id = id, .cpus = {}, .bytes = ReadNodeMemory(id).total_bytes};
      for (const int cpu : facts.allowed) {
        if (numa_node_of_cpu(cpu) == id) node.cpus.push_back(cpu);
      }
      facts.nodes.push_back(std::move(node));
    }
  }
  return facts;
}

}  // namespace kvd
