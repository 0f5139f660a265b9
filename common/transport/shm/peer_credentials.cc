#include "common/transport/shm/peer_credentials.h"

#include <sys/socket.h>

#include <cerrno>

namespace kvd {
namespace {

// Supplementary groups; none if the kernel does not say.
std::vector<gid_t> GroupsOf(int socket) {
  std::vector<gid_t> groups(64);
  for (;;) {
    socklen_t length = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const int error =
        getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length) == 0 ? 0 : errno;
    const size_t count = error == 0 || error == ERANGE ? length / sizeof(gid_t) : 0;
    const bool whole = error != ERANGE || count <= groups.size();
    groups.resize(count);
    if (whole) return groups;
  }
}

}  // namespace

PeerCredentials PeerCredentialsOf(int socket, const UserNamespace& here) {
  PeerCredentials peer;
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return peer;
  peer.pid = credentials.pid;
  peer.user = here.users.Vouched(credentials.uid);
  peer.group = here.groups.Vouched(credentials.gid);
  peer.groups = GroupsOf(socket);
  peer.groups.push_back(peer.group);
  std::erase_if(peer.groups, [&](gid_t id) { return here.groups.Vouched(id) == kNoId; });
  return peer;
}

}  // namespace kvd
