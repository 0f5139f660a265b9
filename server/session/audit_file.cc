#include "server/session/audit_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"

namespace kvd {
namespace {

// A symbolic link would let who owns its directory choose the file; waiting for the reader of a
// FIFO would hold kvd up.
constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;

absl::Status Bad(const std::string& path, std::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat("--audit=", path, ToAbsl(what)));
}

absl::Status OpenFailure(const std::string& path, int error) {
  struct stat facts {};
  const bool is_there = lstat(path.c_str(), &facts) == 0;
  if (error == ELOOP && is_there && S_ISLNK(facts.st_mode)) {
    return Bad(path,
               " is a symbolic link; name the file that it leads to, or - for standard error");
  }
  if (error == EISDIR) return Bad(path, " is a directory; name a file in it");
  if (error == ENXIO && is_there && S_ISFIFO(facts.st_mode))
    return Bad(path, " is a FIFO that nobody reads; start its reader first");
  if (error == ENXIO) return Bad(path, " cannot be appended to; name a regular file");
  const absl::Status status = ErrnoStatus(error, absl::StrCat("open of --audit=", path));
  const bool may_not = error == EACCES || error == EPERM || error == EROFS;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(),
                   may_not ? "; let kvd's user write it, or name a file in a directory of its own"
                           : "; name a file in a directory that is there"));
}

// Of a file that is not there.
absl::Status CheckDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  // Unnamed, so that nobody ever sees it.
  const UniqueFd file(open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (file.valid()) return absl::OkStatus();
  if (errno != EOPNOTSUPP && errno != EISDIR) return OpenFailure(path, errno);
  // A file system without unnamed files.
  struct statfs system {};
  if (statfs(directory.c_str(), &system) == 0 &&
      (system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC)) {
    return OpenFailure(path, ENOENT);
  }
  if (faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return OpenFailure(path, errno);
  return absl::OkStatus();
}

}  // namespace

absl::Status JudgeAuditFile(const std::string& path, const struct stat& facts) {
  const mode_t mode = facts.st_mode;
  if (S_ISLNK(mode)) return OpenFailure(path, ELOOP);
  if (S_ISDIR(mode)) return OpenFailure(path, EISDIR);
  if (!S_ISREG(mode) && !S_ISFIFO(mode) && !S_ISCHR(mode)) return OpenFailure(path, ENXIO);
  if (facts.st_uid != geteuid() && facts.st_uid != 0) {
    return Bad(
        path, absl::StrCat(" belongs to user ", facts.st_uid,
                           ", who could change it; move it away, or chown it to user ", geteuid()));
  }
  // What is written to a device is not there to be changed.
  if (!S_ISCHR(mode) && (mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Bad(path,
               absl::StrFormat(" may be written by others than its owner (mode 0%o); chmod go-w it",
                               mode & 07777));
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> OpenAuditFile(const std::string& path) {
  if (path == "-") return UniqueFd();
  UniqueFd file(open(path.c_str(), kFlags | O_CREAT, 0600));
  if (!file.valid()) return OpenFailure(path, errno);
  struct stat facts {};
  if (fstat(file.get(), &facts) != 0) return ErrnoStatus(absl::StrCat("stat of --audit=", path));
  KVD_RETURN_IF_ERROR(JudgeAuditFile(path, facts));
  return file;
}

absl::Status CheckAuditFile(const std::string& path) {
  if (path == "-") return absl::OkStatus();
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) {
    return errno == ENOENT ? CheckDirectoryOf(path) : OpenFailure(path, errno);
  }
  KVD_RETURN_IF_ERROR(JudgeAuditFile(path, facts));
  if (S_ISFIFO(facts.st_mode)) {
    if (faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) return OpenFailure(path, errno);
    return absl::OkStatus();
  }
  const UniqueFd file(open(path.c_str(), kFlags));
  return file.valid() ? absl::OkStatus() : OpenFailure(path, errno);
}

}  // namespace kvd
