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

absl::StatusOr<bool> ReadUpTo(ByteSource& source, size_t bytes_max, std::string& all,
                              size_t expected) {
  constexpr size_t kStepBytes = 64 * kKiB;
  // One more byte is how the end is seen.
  const size_t limit = bytes_max + 1;
  size_t filled = all.size();
  while (filled < limit) {
    // Only once it is full: resize writes what it adds, and a pipe's pieces are much shorter.
    if (filled == all.size()) {
      const size_t likely = expected >= filled ? expected + 1 : filled + kStepBytes;
      all.resize(std::min(limit, std::max(likely, filled + filled / 2)));
    }
    const absl::StatusOr<size_t> count = source.Read(&all[filled], all.size() - filled);
    if (!count.ok() || *count == 0) {
      all.resize(filled);
      KVD_RETURN_IF_ERROR(count.status());
      return true;
    }
    filled += *count;
  }
  all.resize(filled);
  return false;
}

absl::StatusOr<std::string> ReadAll(ByteSource& source, size_t bytes_max, size_t expected) {
  std::string all;
  KVD_ASSIGN_OR_RETURN(const bool ended, ReadUpTo(source, bytes_max, all, expected));
  if (ended) return all;
  return absl::ResourceExhaustedError(
      absl::StrCat("the input is longer than ", FormatBytes(bytes_max)));
}

}  // namespace kvd::cli
