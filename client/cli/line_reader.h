// Lines of a source, of bounded length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/cli/byte_stream.h"

namespace kvd::cli {

class LineReader {
 public:
  enum class Outcome { kLine, kTooLong, kEnd };

  // Holds at most `line_bytes_max` of a line, and a block, in memory.
  LineReader(ByteSource& source, size_t line_bytes_max)
      : source_(source), line_bytes_max_(line_bytes_max) {}

  // kLine: line() is the next one, without "\n" or "\r\n"; the last one needs none. kTooLong: the
  // next line was longer than allowed and has been passed over. Errors: the source's; what had been
  // read of the line stays, so that after Cancelled the next call goes on with it.
  absl::StatusOr<Outcome> Next();

  // Whether the next call of Next is answered from what has been read already; otherwise it may
  // block.
  bool HoldsLine() const { return block_.find('\n', block_position_) != std::string::npos; }

  size_t line_bytes_max() const { return line_bytes_max_; }

  // Valid until the next call of Next or ReleaseLine.
  std::string_view line() const { return line_; }
  // Gives up the memory of a long line that is not looked at any more.
  void ReleaseLine();
  // Of the line that Next returned last, from 1.
  uint64_t line_number() const { return line_number_; }
  // Bytes taken so far, line ends and too long lines too.
  uint64_t bytes_taken() const { return bytes_taken_; }

 private:
  Outcome Finish();

  static constexpr size_t kBlockBytes = 64 * 1024;
  ByteSource& source_;
  const size_t line_bytes_max_;
  std::string block_;
  size_t block_position_ = 0;
  std::string partial_;   // of a line that spans blocks
  bool passing_ = false;  // over the rest of a too long line
  bool complete_ = true;  // the last call ended a line
  std::string_view line_;
  uint64_t line_number_ = 0;
  uint64_t bytes_taken_ = 0;
};

}  // namespace kvd::cli
