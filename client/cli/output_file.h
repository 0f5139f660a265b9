// A file that is there whole, or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/byte_stream.h"
#include "common/base/unique_fd.h"

namespace kvd::cli {

// Writes beside `path` and takes its place on Commit, so that a reader never sees half of it and an
// earlier file stays whatever goes wrong. What is no regular file (a pipe, /dev/null) is written
// directly.
class OutputFile {
 public:
  // Errors: errno's, naming the path.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);
  // Without a Commit, what was written is removed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  ByteSink& sink() { return sink_; }
  // Bytes of the earlier file, which Commit replaces; 0: there is none, or it is empty.
  uint64_t replaced_bytes() const { return replaced_bytes_; }

  // Once, after the last byte: it is on the disk, under its name, when this returns. Errors: the
  // sink's or another errno; the earlier file, if any, is then as it was.
  absl::Status Commit();

 private:
  OutputFile(UniqueFd file, std::string path, std::string temporary_path)
      : file_(std::move(file)),
        path_(std::move(path)),
        temporary_path_(std::move(temporary_path)),
        sink_(file_.get()) {}

  UniqueFd file_;
  const std::string path_;
  std::string temporary_path_;  // empty: written directly, or committed
  uint64_t replaced_bytes_ = 0;
  FdSink sink_;
};

}  // namespace kvd::cli
