#include "common/transport/shm/socket_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/transport/shm/default_path.h"
#include "common/transport/shm/lock_owner.h"
#include "common/transport/shm/unix_socket.h"

namespace kvd {
namespace {

absl::Status Owned(const std::string& path, const std::string& pid) {
  return absl::AlreadyExistsError(
      absl::StrCat("another kvd (pid ", pid.empty() ? "unknown" : pid, ") already serves ", path,
                   "; stop it, or choose another socket with --shm=PATH"));
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string ReadPid(int fd) {
  char text[32] = {};
  const ssize_t bytes = pread(fd, text, sizeof(text) - 1, 0);
  return bytes <= 0 ? std::string() : std::string(absl::StripAsciiWhitespace(text));
}

std::string LockPathOf(const std::string& path) { return path + ".lock"; }

// What to do about a directory that cannot hold the socket.
std::string DirectoryRemedy(const std::string& path, const char* otherwise) {
  if (DefaultSocketPathIsFromEnvironment() && path == DefaultSocketPath()) {
    return "XDG_RUNTIME_DIR names that directory: correct or unset it, or choose another socket "
           "with --shm=PATH";
  }
  return otherwise;
}

absl::Status DirectoryError(int error, const std::string& path) {
  const std::string directory = DirectoryOf(path);
  if (error == ENOENT || error == ENOTDIR) {
    return absl::InvalidArgumentError(absl::StrCat("the directory ", directory, " of the socket ",
                                                   path, " does not exist; ",
                                                   DirectoryRemedy(path, "create it first")));
  }
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(absl::StrCat(
        "cannot create ", LockPathOf(path), ": ", directory, " is not writable by user ", geteuid(),
        "; ", DirectoryRemedy(path, "choose another socket with --shm=PATH")));
  }
  return ErrnoStatus(error, absl::StrCat("open ", LockPathOf(path)));
}

// Whether `lock` is still the file at `lock_path`.
bool IsThere(int lock, const std::string& lock_path) {
  struct stat held;
  struct stat there;
  return fstat(lock, &held) == 0 && lstat(lock_path.c_str(), &there) == 0 &&
         held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

// The lock, or null where another process has it, whose pid then is in `owner`.
absl::StatusOr<UniqueFd> TryLock(const std::string& path, std::string& owner) {
  const std::string lock_path = LockPathOf(path);
  while (true) {
    UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock.valid()) return DirectoryError(errno, path);
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return ErrnoStatus(absl::StrCat("flock ", lock_path));
      owner = ReadPid(lock.get());
      return UniqueFd();
    }
    // Between open and flock its holder may have removed the file: then this lock guards nothing.
    if (IsThere(lock.get(), lock_path)) return lock;
  }
}

bool SomebodyListens(const sockaddr_un& address) {
  const absl::StatusOr<UniqueFd> probe = MakeUnixSocket();
  if (!probe.ok()) return true;
  fcntl(probe->get(), F_SETFL, O_NONBLOCK);
  return connect(probe->get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
         errno == EAGAIN || errno == EPROTOTYPE;
}

// Whether the lock that `owner` holds will be dropped soon.
bool WillBeDropped(const std::string& owner, const sockaddr_un& address) {
  switch (LookAtLockOwner(owner)) {
    case LockOwner::kLives:
      return false;
    case LockOwner::kEnds:
      return true;
    case LockOwner::kGone:  // a moment ago; or it is a living one of another container
      return !SomebodyListens(address);
  }
  return false;
}

absl::Status EndsTooSlowly(const std::string& path, const std::string& pid) {
  return absl::AlreadyExistsError(
      absl::StrCat("the kvd (pid ", pid, ") that served ", path,
                   " has ended, and the kernel has not yet taken its memory back; try again, or "
                   "choose another socket with --shm=PATH"));
}

// Also waits for a process that ends: the larger its memory, the longer it still holds the lock.
absl::StatusOr<UniqueFd> Lock(const std::string& path, const sockaddr_un& address,
                              const SocketClaim::Patience& patience) {
  constexpr timespec kPause{0, 5'000'000};
  const int64_t until_ns = RealClock::Get().NowMonotonicNs() + patience.for_dying_ns;
  bool told = false;
  while (true) {
    std::string owner;
    KVD_ASSIGN_OR_RETURN(UniqueFd lock, TryLock(path, owner));
    if (lock.valid()) return lock;
    if (!WillBeDropped(owner, address)) return Owned(path, owner);
    if (patience.cancelled && patience.cancelled()) {
      return absl::CancelledError(absl::StrCat("given up while another kvd ended at ", path));
    }
    if (RealClock::Get().NowMonotonicNs() >= until_ns) return EndsTooSlowly(path, owner);
    if (!std::exchange(told, true) && patience.log) {
      patience.log(absl::StrCat("waiting for the end of the kvd (pid ", owner, ") that served ",
                                path, ": the kernel takes its memory back"));
    }
    clock_nanosleep(CLOCK_MONOTONIC, 0, &kPause, nullptr);
  }
}

absl::Status CheckLockable(const std::string& path, const sockaddr_un& address) {
  const std::string lock_path = LockPathOf(path);
  const UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!lock.valid()) {
    return errno == ENOENT ? absl::OkStatus() : DirectoryError(errno, path);
  }
  // Shared, so that two that only look do not refuse each other.
  if (flock(lock.get(), LOCK_SH | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) return ErrnoStatus(absl::StrCat("flock ", lock_path));
  const std::string owner = ReadPid(lock.get());
  return WillBeDropped(owner, address) ? absl::OkStatus() : Owned(path, owner);
}

absl::Status WritePid(int lock) {
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(lock, 0) != 0 ||
      pwrite(lock, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return ErrnoStatus("writing the pid into the socket's lock file");
  }
  return absl::OkStatus();
}

// Whoever listens although we hold the lock: its lock file was removed, or it is no kvd.
absl::Status CheckNobodyListens(const std::string& path, const sockaddr_un& address) {
  KVD_ASSIGN_OR_RETURN(const UniqueFd probe, MakeUnixSocket());
  fcntl(probe.get(), F_SETFL, O_NONBLOCK);
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno != EAGAIN && errno != EPROTOTYPE) {
    return absl::OkStatus();
  }
  ucred owner{};
  socklen_t length = sizeof(owner);
  getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &owner, &length);
  const std::string pid = owner.pid > 0 ? absl::StrCat(owner.pid) : std::string();
  // One that ends lets go of its lock and of its socket in no particular order.
  if (LookAtLockOwner(pid) == LockOwner::kEnds) return absl::OkStatus();
  return Owned(path, pid);
}

// Whether the path is free, or holds the socket of a kvd that is dead.
absl::Status CheckSocket(const std::string& path, const sockaddr_un& address) {
  struct stat facts;
  if (lstat(path.c_str(), &facts) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoStatus(absl::StrCat("lstat ", path));
  }
  if (!S_ISSOCK(facts.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " exists and is not a socket; remove it, or choose another with --shm=PATH"));
  }
  return CheckNobodyListens(path, address);
}

absl::Status RemoveDeadSocket(const std::string& path, const sockaddr_un& address) {
  KVD_RETURN_IF_ERROR(CheckSocket(path, address));
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus(absl::StrCat("removing the dead socket ", path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SocketClaim> SocketClaim::Take(const std::string& path, const Patience& patience) {
  KVD_ASSIGN_OR_RETURN(const sockaddr_un address, MakeUnixAddress(path));
  KVD_RETURN_IF_ERROR(PrepareDefaultDirectory(path));
  KVD_ASSIGN_OR_RETURN(UniqueFd lock, Lock(path, address, patience));
  SocketClaim claim(path, std::move(lock));
  KVD_RETURN_IF_ERROR(RemoveDeadSocket(path, address));
  KVD_RETURN_IF_ERROR(WritePid(claim.lock_.get()));
  return claim;
}

absl::Status SocketClaim::Check(const std::string& path) {
  KVD_ASSIGN_OR_RETURN(const sockaddr_un address, MakeUnixAddress(path));
  KVD_RETURN_IF_ERROR(CheckDefaultDirectory(path));
  std::string directory = DirectoryOf(path);
  // Take makes the directory of a default path.
  if (access(directory.c_str(), F_OK) != 0 && DefaultDirectoryIsMade(path)) {
    directory = DirectoryOf(directory);
  }
  if (faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return DirectoryError(errno, path);
  KVD_RETURN_IF_ERROR(CheckLockable(path, address));
  return CheckSocket(path, address);
}

std::string SocketClaim::LivingOwner(const std::string& path) {
  const absl::StatusOr<sockaddr_un> address = MakeUnixAddress(path);
  const UniqueFd lock(open(LockPathOf(path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!address.ok() || !lock.valid()) return "";
  if (flock(lock.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return "";
  const std::string owner = ReadPid(lock.get());
  return WillBeDropped(owner, *address) ? "" : owner;
}

SocketClaim::~SocketClaim() {
  // Another file may be there if somebody removed ours by hand.
  if (!lock_.valid() || !IsThere(lock_.get(), LockPathOf(path_))) return;
  unlink(LockPathOf(path_).c_str());
}

}  // namespace kvd
