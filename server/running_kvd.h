// The kvd that serves a socket at present: what --check takes into account beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace kvd {

struct RunningKvd {
  std::string pid;
  // That its end gives back, as far as the kernel says it to this process.
  uint64_t resident_bytes = 0;   // of ordinary pages
  uint64_t hugepages_bytes = 0;  // of the kernel's pool
};

// Nothing: nobody serves there. Does not block. `root` stands before the paths in /proc, for tests.
std::optional<RunningKvd> FindRunningKvd(const std::string& shm_path, const std::string& root = "");

// Whether one of the sockets that listen at this TCP port is of that process; true also where the
// kernel does not let this one see it.
bool MayListenAt(const std::string& pid, uint16_t port, const std::string& root = "");

}  // namespace kvd
