#include "common/transport/shm/lock_owner.h"

#include <signal.h>

#include <cstdint>
#include <fstream>
#include <sstream>

namespace kvd {
namespace {

constexpr uint64_t kFlagExiting = 4;  // PF_EXITING of the kernel
constexpr uint64_t kPendingKill = uint64_t{1} << (SIGKILL - 1);

// Its main thread is past its end, or on the way there. proc(5): the name, in parentheses, may hold
// anything, so fields are counted behind the last one.
bool IsPastItsEnd(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(stat.substr(name_end + 1));
  char state = '?';
  int64_t skipped = 0;
  uint64_t flags = 0;
  fields >> state;
  for (int i = 0; i < 5; ++i) fields >> skipped;  // ppid, pgrp, session, tty_nr, tpgid
  fields >> flags;
  return state == 'Z' || state == 'X' || (fields && (flags & kFlagExiting) != 0);
}

// It was killed, and has not come to notice.
bool IsKilled(std::ifstream status) {
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigPnd:") && !line.starts_with("ShdPnd:")) continue;
    uint64_t pending = 0;
    std::istringstream(line.substr(7)) >> std::hex >> pending;
    if ((pending & kPendingKill) != 0) return true;
  }
  return false;
}

}  // namespace

LockOwner LookAtLockOwner(const std::string& pid) {
  if (pid.empty() || pid.find_first_not_of("0123456789") != std::string::npos) {
    return LockOwner::kLives;
  }
  const std::string directory = "/proc/" + pid;
  // In this order: what is killed, and no more when it is looked at again, exits by then.
  const bool killed = IsKilled(std::ifstream(directory + "/status"));
  std::string stat;
  if (!std::getline(std::ifstream(directory + "/stat"), stat)) return LockOwner::kGone;
  return killed || IsPastItsEnd(stat) ? LockOwner::kEnds : LockOwner::kLives;
}

}  // namespace kvd
