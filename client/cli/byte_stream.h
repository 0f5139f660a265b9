// Where kvcli's bytes come from and go to; files in the program, strings in unit tests.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvd::cli {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Blocks for at least one byte; 0 is the end. Cancelled: a signal came. Otherwise errno's code.
  virtual absl::StatusOr<size_t> Read(char* into, size_t size) = 0;
};

// Keeps the first error and drops everything written after it, so a writer looks at it at the end,
// and in long loops in between.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void Write(std::string_view bytes) = 0;
  // Hands on what is buffered. May block.
  virtual void Flush() = 0;
  // The errno of the first error, 0 while there is none.
  int error_number() const { return error_number_; }
  bool ok() const { return error_number_ == 0; }

 protected:
  int error_number_ = 0;
};

// Neither owns its descriptor.
class FdSource : public ByteSource {
 public:
  FdSource(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  absl::StatusOr<size_t> Read(char* into, size_t size) override;

 private:
  const int fd_;
  const std::string name_;  // for messages
};

class FdSink : public ByteSink {
 public:
  explicit FdSink(int fd) : fd_(fd) {}
  void Write(std::string_view bytes) override;
  void Flush() override;

 private:
  void WriteThrough(std::string_view bytes);

  static constexpr size_t kBufferBytes = 64 * 1024;
  const int fd_;
  std::string buffer_;
};

// Appends what `source` has to `all`, until its end (true), or until `all` is longer than
// `bytes_max` (false): by one byte at most, so that the rest stays in the source. Takes time and
// Reads in proportion to the bytes, in however small pieces they come. `expected`: how long `all`
// is likely to become, so that a long one is not copied while it grows; 0: not known.
absl::StatusOr<bool> ReadUpTo(ByteSource& source, size_t bytes_max, std::string& all,
                              size_t expected = 0);

// All of `source`. ResourceExhausted: more than `bytes_max`.
absl::StatusOr<std::string> ReadAll(ByteSource& source, size_t bytes_max, size_t expected = 0);

}  // namespace kvd::cli
