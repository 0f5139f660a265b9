#include "common/transport/verbs/device_sysfs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace kvd::verbs {
namespace {

namespace fs = std::filesystem;

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Names in a directory, sorted; none if it cannot be read.
std::vector<std::string> Entries(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator entry(directory, ignored), end; entry != end;
       entry.increment(ignored)) {
    names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string PathOf(const std::string& root, const std::string& device) {
  return absl::StrCat(root, "/sys/class/infiniband/", device, "/");
}

}  // namespace

std::vector<std::string> KernelDevices(const std::string& root) {
  return Entries(root + "/sys/class/infiniband");
}

std::vector<std::string> UverbsDevices(const std::string& root) {
  const std::string directory = root + "/sys/class/infiniband_verbs/";
  std::set<std::string> names;
  for (const std::string& entry : Entries(directory)) {
    std::string device = ReadLine(directory + entry + "/ibdev");
    if (!device.empty()) names.insert(std::move(device));
  }
  return {names.begin(), names.end()};
}

std::string NetdevOfPort(const std::string& device, uint32_t port, const std::string& root) {
  // RoCE: each GID's own.
  const std::string gids = absl::StrCat(PathOf(root, device), "ports/", port, "/gid_attrs/ndevs/");
  for (const std::string& index : Entries(gids)) {
    if (std::string netdev = ReadLine(gids + index); !netdev.empty()) return netdev;
  }
  // Soft-RoCE and siw: what they were made on.
  if (std::string netdev = ReadLine(PathOf(root, device) + "parent"); !netdev.empty()) {
    return netdev;
  }
  // InfiniBand: the network device of the same port of the same adapter.
  const std::string siblings = PathOf(root, device) + "device/net/";
  for (const std::string& netdev : Entries(siblings)) {
    uint32_t index = 0;
    if (absl::SimpleAtoi(ReadLine(siblings + netdev + "/dev_port"), &index) && index + 1 == port) {
      return netdev;
    }
  }
  return "";
}

int NumaNodeOfDevice(const std::string& device, const std::string& root) {
  int node = -1;
  const std::string line = ReadLine(PathOf(root, device) + "device/numa_node");
  return absl::SimpleAtoi(line, &node) ? node : -1;
}

bool IsSoftwareDevice(const std::string& device, const std::string& root) {
  std::error_code ignored;
  // Soft-RoCE names its network device there, and on some kernels has that one's hardware as well.
  return fs::exists(PathOf(root, device) + "parent", ignored) ||
         !fs::exists(PathOf(root, device) + "device", ignored);
}

}  // namespace kvd::verbs
