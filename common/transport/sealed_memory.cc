#include "common/transport/sealed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"

namespace kvd {

absl::StatusOr<UniqueFd> MakeSealedMemory(const SealedMemoryOptions& options) {
  UniqueFd fd(memfd_create(options.name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return ErrnoStatus("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(options.bytes)) != 0) {
    return ErrnoStatus(absl::StrCat("ftruncate of a memfd to ", options.bytes, " bytes"));
  }
  if (options.reserve && fallocate(fd.get(), 0, 0, static_cast<off_t>(options.bytes)) != 0) {
    return ErrnoStatus(absl::StrCat("fallocate of ", options.bytes, " bytes of a memfd"));
  }
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return ErrnoStatus("sealing a memfd");
  }
  return fd;
}

absl::Status CheckSealedMemory(int fd, uint64_t bytes) {
  // F_GET_SEALS fails with EINVAL for whatever is not memory: a pipe, a device, a file of a real
  // file system.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return absl::InvalidArgumentError("the descriptor is not a memfd");
  if ((seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError("the memfd is not sealed against shrinking");
  }
  struct stat facts;
  if (fstat(fd, &facts) != 0) return ErrnoStatus("fstat of a memfd");
  if (static_cast<uint64_t>(facts.st_size) < bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memfd has ", facts.st_size, " bytes and should have ", bytes));
  }
  return absl::OkStatus();
}

}  // namespace kvd
