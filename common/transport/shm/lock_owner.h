// Whether the process that holds a socket's lock is about to let go of it.
#pragma once

#include <string>

namespace kvd {

enum class LockOwner {
  kLives,  // as far as can be seen
  kEnds,   // was killed, or exits: the kernel drops its lock once it has taken its memory back
  kGone,   // no process of this name space has that id
};

// `pid`: as the lock file says. From /proc, so of every user's processes; does not block.
LockOwner LookAtLockOwner(const std::string& pid);

}  // namespace kvd
