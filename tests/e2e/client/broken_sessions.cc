#include "tests/e2e/client/broken_sessions.h"

#include <dirent.h>
#include <sys/socket.h>

#include <cstdlib>

namespace kvd::test {
namespace {

bool IsSession(int fd) {
  int type = 0;
  int domain = 0;
  socklen_t bytes = sizeof(int);
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0 || type != SOCK_SEQPACKET)
    return false;
  bytes = sizeof(int);
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) != 0 || domain != AF_UNIX)
    return false;
  sockaddr_storage peer;
  socklen_t peer_bytes = sizeof(peer);
  return getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) == 0;
}

}  // namespace

int BreakSessions() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  int broken = 0;
  while (const dirent* entry = readdir(directory)) {
    const int fd = std::atoi(entry->d_name);
    if (fd > 2 && IsSession(fd) && shutdown(fd, SHUT_RDWR) == 0) ++broken;
  }
  closedir(directory);
  return broken;
}

}  // namespace kvd::test
