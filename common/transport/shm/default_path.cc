#include "common/transport/shm/default_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"

namespace kvd {
namespace {

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool InTmp(const std::string& path) { return absl::StartsWith(path, "/tmp/kvd-"); }

}  // namespace

std::string DefaultSocketPathOf(uid_t uid, const char* xdg_runtime_dir) {
  if (uid == 0) return "/run/kvd/kvd.sock";
  if (xdg_runtime_dir != nullptr && xdg_runtime_dir[0] == '/') {
    return absl::StrCat(xdg_runtime_dir, "/kvd.sock");
  }
  return absl::StrCat("/tmp/kvd-", uid, "/kvd.sock");
}

std::string DefaultSocketPath() {
  return DefaultSocketPathOf(geteuid(), std::getenv("XDG_RUNTIME_DIR"));
}

bool DefaultSocketPathIsFromEnvironment() {
  const char* xdg_runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  return DefaultSocketPathOf(geteuid(), xdg_runtime_dir) != DefaultSocketPathOf(geteuid(), nullptr);
}

bool DefaultDirectoryIsMade(const std::string& socket_path) {
  return socket_path == DefaultSocketPath() && !DefaultSocketPathIsFromEnvironment();
}

absl::Status PrepareDefaultDirectory(const std::string& socket_path) {
  if (!DefaultDirectoryIsMade(socket_path)) return CheckDefaultDirectory(socket_path);
  const std::string directory = DirectoryOf(socket_path);
  const mode_t mode = InTmp(socket_path) ? 0700 : 0755;
  if (mkdir(directory.c_str(), mode) != 0 && errno != EEXIST) {
    return ErrnoStatus(absl::StrCat("mkdir ", directory));
  }
  return CheckDefaultDirectory(socket_path);
}

absl::Status CheckDefaultDirectory(const std::string& socket_path) {
  if (!InTmp(socket_path) || socket_path != DefaultSocketPath()) return absl::OkStatus();
  const std::string directory = DirectoryOf(socket_path);
  struct stat facts;
  if (lstat(directory.c_str(), &facts) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoStatus(absl::StrCat("lstat ", directory));
  }
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() || (facts.st_mode & 022) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(directory, " is not a directory that belongs to this user alone (owner ",
                     facts.st_uid, "); remove it or choose another socket path"));
  }
  return absl::OkStatus();
}

}  // namespace kvd
