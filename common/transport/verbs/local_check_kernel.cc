#include "common/transport/verbs/local_check_kernel.h"

#include <linux/capability.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace kvd::verbs {
namespace {

constexpr const char* kPool = "hugepages/hugepages-2048kB/";
constexpr const char* kGiganticPool = "hugepages/hugepages-1048576kB/";
// More nodes than any kernel is built for.
constexpr uint32_t kNodesMax = 1024;

bool ReadNumber(const std::string& path, uint64_t& number) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && absl::SimpleAtoi(line, &number);
}

uint64_t NumberIn(const std::string& path) {
  uint64_t number = 0;
  return ReadNumber(path, number) ? number : 0;
}

// Pages that a process can still have.
uint64_t FreePages(const std::string& pool) {
  const uint64_t free = NumberIn(pool + "free_hugepages");
  const uint64_t overcommit = NumberIn(pool + "nr_overcommit_hugepages");
  return free - std::min(free, NumberIn(pool + "resv_hugepages")) + overcommit -
         std::min(overcommit, NumberIn(pool + "surplus_hugepages"));
}

// A process of the machine's own user namespace: all ids are mapped to themselves.
bool InFirstUserNamespace(const std::string& root) {
  std::ifstream file(root + "/proc/self/uid_map");
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  // Without the file the kernel has no user namespaces.
  return !(file >> inside >> outside >> count) || (outside == 0 && count == UINT32_MAX);
}

}  // namespace

NamespaceMode ReadNamespaceMode(const std::string& root) {
  std::ifstream file(root + "/sys/module/ib_core/parameters/netns_mode");
  char shared = '\0';
  if (!(file >> shared)) return NamespaceMode::kUnknown;
  return shared == 'Y' ? NamespaceMode::kShared : NamespaceMode::kExclusive;
}

bool MayLockWithoutLimit(const std::string& root) {
  std::ifstream file(root + "/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    uint64_t effective = 0;
    if (words >> name && name == "CapEff:" && words >> std::hex >> effective) {
      return (effective >> CAP_IPC_LOCK & 1) != 0 && InFirstUserNamespace(root);
    }
  }
  return false;
}

void ReadHugepages(LocalFacts& facts, const std::string& root) {
  const std::string pool = absl::StrCat(root, "/sys/kernel/mm/", kPool);
  facts.hugepages_total = NumberIn(pool + "nr_hugepages");
  facts.hugepages_free = FreePages(pool);
  facts.gigantic_free = FreePages(absl::StrCat(root, "/sys/kernel/mm/", kGiganticPool));
  facts.hugepage_nodes.clear();
  for (uint32_t node = 0; node < kNodesMax; ++node) {
    const std::string of_node =
        absl::StrCat(root, "/sys/devices/system/node/node", node, "/", kPool);
    NodeHugepages pages;
    pages.node = node;
    if (!ReadNumber(of_node + "nr_hugepages", pages.total)) continue;
    pages.free = NumberIn(of_node + "free_hugepages");
    facts.hugepage_nodes.push_back(pages);
  }
}

}  // namespace kvd::verbs
