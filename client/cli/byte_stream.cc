#include "client/cli/byte_stream.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"

namespace kvd::cli {

absl::StatusOr<size_t> FdSource::Read(char* into, size_t size) {
  const ssize_t count = ::read(fd_, into, size);
  if (count >= 0) return static_cast<size_t>(count);
  if (errno == EINTR) return absl::CancelledError("interrupted");
  return ErrnoStatus("cannot read " + name_);
}

void FdSink::Write(std::string_view bytes) {
  if (!ok()) return;
  if (buffer_.size() + bytes.size() > kBufferBytes) Flush();
  if (bytes.size() >= kBufferBytes) {
    WriteThrough(bytes);
  } else {
    buffer_ += bytes;
  }
}

void FdSink::Flush() {
  WriteThrough(buffer_);
  buffer_.clear();
}

void FdSink::WriteThrough(std::string_view bytes) {
  while (ok() && !bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      error_number_ = errno;
    }
  }
}

absl::StatusOr<std::string> ReadAll(ByteSource& source, size_t bytes_max, size_t expected) {
  constexpr size_t kStepBytes = 64 * kKiB;
  std::string all;
  // One more byte is how the end is seen.
  const size_t likely = expected == 0 ? 0 : std::min(expected, bytes_max) + 1;
  all.reserve(likely);
  while (true) {
    const size_t before = all.size();
    all.resize(before < likely ? likely : before + std::max(kStepBytes, before / 2));
    KVD_ASSIGN_OR_RETURN(const size_t count, source.Read(&all[before], all.size() - before));
    all.resize(before + count);
    if (count == 0) return all;
    if (all.size() > bytes_max) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the input is longer than ", FormatBytes(bytes_max)));
    }
  }
}

}  // namespace kvd::cli
