#include "client/cli/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/errno_status.h"

namespace kvd::cli {

absl::StatusOr<UniqueFd> OpenForReading(const std::string& path) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return ErrnoStatus(absl::StrCat("cannot open ", Quoted(path)));
  struct stat about = {};
  if (::fstat(file.get(), &about) == 0 && S_ISDIR(about.st_mode)) {
    return ErrnoStatus(EISDIR, absl::StrCat("cannot read ", Quoted(path)));
  }
  return file;
}

std::optional<uint64_t> KnownBytes(int fd) {
  struct stat about = {};
  if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  return static_cast<uint64_t>(about.st_size);
}

}  // namespace kvd::cli
