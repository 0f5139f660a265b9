#include "common/base/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/units.h"

namespace kvd {
namespace {

// The file's content up to the first newline; empty if it cannot be read.
std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool ReadNumber(const std::string& path, uint64_t& number) {
  return absl::SimpleAtoi(ReadLine(path), &number);
}

void ReadMeminfo(const std::string& path, MachineMemory& memory) {
  std::ifstream file(path);
  std::string name;
  std::string rest;
  uint64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemTotal:") memory.total_bytes = kib * kKiB;
    if (name == "MemAvailable:") memory.available_bytes = kib * kKiB;
    std::getline(file, rest);
  }
}

// The number after `name` in a file of lines "NAME NUMBER"; zero if there is none.
uint64_t NumberNamed(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string found;
  uint64_t number = 0;
  while (file >> found >> number) {
    if (found == name) return number;
  }
  return 0;
}

// Takes the limit in directory/limit_file if it is tighter than the one known. Cached files that
// nobody uses are charged too, but the kernel drops them before it refuses memory.
void TakeLimit(const std::string& directory, const char* limit_file, const char* used_file,
               MachineMemory& memory) {
  uint64_t limit = 0;
  if (!ReadNumber(directory + limit_file, limit)) return;  // absent, or "max"
  uint64_t used = 0;
  ReadNumber(directory + used_file, used);
  used -= std::min(used, NumberNamed(directory + "memory.stat", "inactive_file"));
  const uint64_t left = limit - std::min(limit, used);
  if (left >= memory.limit_bytes - std::min(memory.limit_bytes, memory.limit_used_bytes)) return;
  memory.limit_bytes = limit;
  memory.limit_used_bytes = used;
  memory.limit_name = directory + limit_file;
}

// A group's limits hold for all groups below it, so every ancestor is asked.
void ReadGroupLimits(const std::string& mount, std::string group, const char* limit_file,
                     const char* used_file, MachineMemory& memory) {
  while (true) {
    TakeLimit(mount + (group == "/" ? "" : group) + "/", limit_file, used_file, memory);
    if (group.empty() || group == "/") return;
    group.resize(group.find_last_of('/'));
  }
}

}  // namespace

uint64_t MachineMemory::usable_bytes() const {
  if (total_bytes == 0) return UINT64_MAX;
  return std::min(available_bytes, limit_bytes - std::min(limit_bytes, limit_used_bytes));
}

std::string MachineMemory::Describe() const {
  if (usable_bytes() == available_bytes) {
    return absl::StrCat(FormatBytes(available_bytes), " of ", FormatBytes(total_bytes),
                        " are available");
  }
  return absl::StrCat(FormatBytes(usable_bytes()), " are left of the limit of ",
                      FormatBytes(limit_bytes), " in ", limit_name);
}

MachineMemory ReadMachineMemory(const std::string& root) {
  MachineMemory memory;
  ReadMeminfo(root + "/proc/meminfo", memory);
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      ReadGroupLimits(root + "/sys/fs/cgroup", group, "memory.max", "memory.current", memory);
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      ReadGroupLimits(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
                      "memory.usage_in_bytes", memory);
    }
  }
  return memory;
}

NodeMemory ReadNodeMemory(int node, const std::string& root) {
  NodeMemory memory;
  std::ifstream file(absl::StrCat(root, "/sys/devices/system/node/node", node, "/meminfo"));
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);  // Node 0 MemTotal: 985464 kB
    std::string ignored;
    std::string name;
    uint64_t kib = 0;
    if (!(words >> ignored >> ignored >> name >> kib)) continue;
    if (name == "MemTotal:") memory.total_bytes = kib * kKiB;
    if (name == "MemFree:" || name == "Active(file):" || name == "Inactive(file):" ||
        name == "SReclaimable:") {
      memory.available_bytes += kib * kKiB;
    }
  }
  return memory;
}

uint64_t FreeHugepagesOfNode(int node, uint64_t page_bytes, const std::string& root) {
  uint64_t free = 0;
  ReadNumber(absl::StrCat(root, "/sys/devices/system/node/node", node, "/hugepages/hugepages-",
                          page_bytes / kKiB, "kB/free_hugepages"),
             free);
  return free;
}

uint64_t FreeHugepages(uint64_t page_bytes, const std::string& root) {
  const std::string pool =
      absl::StrCat(root, "/sys/kernel/mm/hugepages/hugepages-", page_bytes / kKiB, "kB/");
  uint64_t free = 0;
  uint64_t reserved = 0;
  uint64_t overcommit = 0;
  uint64_t surplus = 0;
  ReadNumber(pool + "free_hugepages", free);
  ReadNumber(pool + "resv_hugepages", reserved);
  ReadNumber(pool + "nr_overcommit_hugepages", overcommit);
  ReadNumber(pool + "surplus_hugepages", surplus);
  return free - std::min(free, reserved) + overcommit - std::min(overcommit, surplus);
}

bool TransparentHugepagesForSharedMemory(const std::string& root) {
  const std::string setting = ReadLine(root + "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  for (const char* enabled : {"[always]", "[within_size]", "[advise]", "[force]"}) {
    if (setting.find(enabled) != std::string::npos) return true;
  }
  return false;
}

}  // namespace kvd
