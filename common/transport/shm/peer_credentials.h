// Who is at the other end of a Unix socket, as far as the kernel vouches for it.
#pragma once

#include <sys/types.h>

#include <vector>

#include "common/base/user_namespace.h"

namespace kvd {

struct PeerCredentials {
  pid_t pid = 0;
  uid_t user = kNoId;              // effective; kNoId: the kernel does not say, or not who
  gid_t group = kNoId;             // likewise
  std::vector<gid_t> groups = {};  // with `group` among them; those that mean somebody
};

// Of a socket that is connected: of who has connected, as it was then, or of who listens, as it was
// when it began to.
PeerCredentials PeerCredentialsOf(int socket, const UserNamespace& here);

}  // namespace kvd
