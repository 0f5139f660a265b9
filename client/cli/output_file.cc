#include "client/cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/errno_status.h"

namespace kvd::cli {
namespace {

// Where a symbolic link leads, so that the link stays one.
std::string Resolved(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string resolved = real;
  std::free(real);
  return resolved;
}

mode_t CurrentUmask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

// So that the new name outlives a power failure; file systems that cannot are as good as they are.
void SyncDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.valid()) ::fsync(opened.get());
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  const std::string final_path = Resolved(path);
  struct stat about = {};
  const bool exists = ::stat(final_path.c_str(), &about) == 0;
  if (exists && !S_ISREG(about.st_mode)) {
    UniqueFd file(::open(final_path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!file.valid()) return ErrnoStatus(absl::StrCat("cannot open ", Quoted(path)));
    return std::unique_ptr<OutputFile>(new OutputFile(std::move(file), final_path, ""));
  }
  std::string temporary = final_path + ".XXXXXX";
  UniqueFd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus(absl::StrCat("cannot create a file beside ", Quoted(path)));
  const mode_t mode = exists ? about.st_mode & 07777 : 0666 & ~CurrentUmask();
  std::unique_ptr<OutputFile> output(
      new OutputFile(std::move(file), final_path, std::move(temporary)));
  if (exists) output->replaced_bytes_ = static_cast<uint64_t>(about.st_size);
  if (::fchmod(output->file_.get(), mode) != 0) {
    return ErrnoStatus(absl::StrCat("cannot set the mode of ", Quoted(output->temporary_path_)));
  }
  return output;
}

OutputFile::~OutputFile() {
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

absl::Status OutputFile::Commit() {
  sink_.Flush();
  if (!sink_.ok()) {
    return ErrnoStatus(sink_.error_number(), absl::StrCat("cannot write ", Quoted(path_)));
  }
  if (temporary_path_.empty()) return absl::OkStatus();
  if (::fsync(file_.get()) != 0) return ErrnoStatus(absl::StrCat("cannot write ", Quoted(path_)));
  if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(absl::StrCat("cannot rename ", Quoted(temporary_path_)));
  }
  temporary_path_.clear();
  SyncDirectoryOf(path_);
  return absl::OkStatus();
}

}  // namespace kvd::cli
