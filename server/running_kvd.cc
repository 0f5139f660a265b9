#include "server/running_kvd.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/base/units.h"
#include "common/transport/shm/socket_claim.h"

namespace kvd {

std::optional<RunningKvd> FindRunningKvd(const std::string& shm_path, const std::string& root) {
  RunningKvd running{.pid = SocketClaim::LivingOwner(shm_path)};
  if (running.pid.empty()) return std::nullopt;
  std::ifstream status(absl::StrCat(root, "/proc/", running.pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t kib = 0;
    if (!(words >> name >> kib)) continue;
    if (name == "VmRSS:") running.resident_bytes = kib * kKiB;
    if (name == "HugetlbPages:") running.hugepages_bytes = kib * kKiB;
  }
  return running;
}

}  // namespace kvd
