#include "server/running_kvd.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

bool MayListenAt(const std::string& pid, uint16_t port, const std::string& root) {
  const std::string process = absl::StrCat(root, "/proc/", pid);
  std::error_code error;
  std::set<std::string> sockets;
  for (std::filesystem::directory_iterator fd(process + "/fd", error), end; !error && fd != end;
       fd.increment(error)) {
    std::error_code gone;
    sockets.insert(std::filesystem::read_symlink(fd->path(), gone).string());
  }
  if (error) return true;
  constexpr char kListens[] = "0A";
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    std::ifstream lines(process + table);
    for (std::string line; std::getline(lines, line);) {
      // "  0: 0100007F:1E20 00000000:0000 0A ...": the local address ends in its port.
      std::istringstream words(line);
      std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      if (!(words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
            timeout >> inode))
        continue;
      if (state == kListens && local.ends_with(absl::StrFormat(":%04X", port)) &&
          sockets.contains(absl::StrCat("socket:[", inode, "]")))
        return true;
    }
  }
  return false;
}

}  // namespace kvd
