// The right to listen at a socket path. One kvd holds it at a time, also while two of them start at
// once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace kvd {

// A lock file beside the socket (PATH.lock) holds the owner's pid. The kernel drops the lock with
// its holder, so a kvd that died leaves nothing that has to be cleaned up by hand. Only the holder
// removes the file, while it still holds the lock; whoever got the lock of a file that is no longer
// at its path begins again.
class SocketClaim {
 public:
  // With a holder that was killed, or exits: the kernel drops its lock only after it has taken the
  // memory back: about a second for each gigabyte on a busy machine.
  struct Patience {
    int64_t for_dying_ns = 60'000'000'000;
    std::function<void(const std::string& line)> log = {};  // one line, if it has to wait
    std::function<bool()> cancelled = {};                   // true: it waits no longer
  };

  // Takes the lock and removes the socket of a kvd that is dead. Makes the directory if `path` is
  // the default one.
  //
  //   InvalidArgument     the path cannot be a socket's: empty, too long, or its directory does not
  //                       exist
  //   AlreadyExists       somebody listens there, or did and does not come to its end; the message
  //                       names the pid
  //   FailedPrecondition  something that is no socket lies there
  //   PermissionDenied    the directory may not be written
  //   Cancelled           as `patience` says
  //
  // Blocks only for a holder that is dying; one that lives is an error at once.
  static absl::StatusOr<SocketClaim> Take(const std::string& path, const Patience& patience);
  static absl::StatusOr<SocketClaim> Take(const std::string& path) {
    return Take(path, Patience());
  }

  // Whether Take would succeed, given its patience; the same errors. Makes and removes nothing, and
  // does not block.
  static absl::Status Check(const std::string& path);

  // The pid of the kvd that serves there, as its lock file says; empty: none, or it ends. Does not
  // block.
  static std::string LivingOwner(const std::string& path);

  // Removes the lock file. The socket must be gone by then.
  ~SocketClaim();
  SocketClaim(SocketClaim&&) noexcept = default;
  SocketClaim& operator=(SocketClaim&&) = delete;

  const std::string& path() const { return path_; }

 private:
  SocketClaim(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
};

}  // namespace kvd
