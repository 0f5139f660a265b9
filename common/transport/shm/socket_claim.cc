#include "common/transport/shm/socket_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/transport/shm/default_path.h"
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

absl::StatusOr<UniqueFd> Lock(const std::string& path) {
  const std::string lock_path = path + ".lock";
  UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) {
    const int error = errno;
    const std::string directory = DirectoryOf(path);
    if (error == ENOENT || error == ENOTDIR) {
      return absl::InvalidArgumentError(absl::StrCat("the directory ", directory, " of the socket ",
                                                     path, " does not exist; create it first"));
    }
    if (error == EACCES || error == EPERM || error == EROFS) {
      return absl::PermissionDeniedError(absl::StrCat("cannot create ", lock_path, ": ", directory,
                                                      " is not writable by user ", geteuid(),
                                                      "; choose another socket with --shm=PATH"));
    }
    return ErrnoStatus(error, absl::StrCat("open ", lock_path));
  }
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Owned(path, ReadPid(lock.get()));
    return ErrnoStatus(absl::StrCat("flock ", lock_path));
  }
  return lock;
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
  return Owned(path, owner.pid > 0 ? absl::StrCat(owner.pid) : std::string());
}

absl::Status RemoveDeadSocket(const std::string& path, const sockaddr_un& address) {
  struct stat facts;
  if (lstat(path.c_str(), &facts) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoStatus(absl::StrCat("lstat ", path));
  }
  if (!S_ISSOCK(facts.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " exists and is not a socket; remove it, or choose another with --shm=PATH"));
  }
  KVD_RETURN_IF_ERROR(CheckNobodyListens(path, address));
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoStatus(absl::StrCat("removing the dead socket ", path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SocketClaim> SocketClaim::Take(const std::string& path) {
  KVD_ASSIGN_OR_RETURN(const sockaddr_un address, MakeUnixAddress(path));
  KVD_RETURN_IF_ERROR(PrepareDefaultDirectory(path));
  KVD_ASSIGN_OR_RETURN(UniqueFd lock, Lock(path));
  KVD_RETURN_IF_ERROR(RemoveDeadSocket(path, address));
  KVD_RETURN_IF_ERROR(WritePid(lock.get()));
  return SocketClaim(path, std::move(lock));
}

}  // namespace kvd
