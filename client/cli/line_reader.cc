#include "client/cli/line_reader.h"

#include "common/base/status_macros.h"

namespace kvd::cli {

absl::StatusOr<LineReader::Outcome> LineReader::Next() {
  if (complete_) {
    partial_.clear();
    passing_ = false;
    complete_ = false;
  }
  while (true) {
    if (block_position_ == block_.size()) {
      block_.resize(kBlockBytes);
      block_position_ = kBlockBytes;  // nothing to take from it, should the read fail
      KVD_ASSIGN_OR_RETURN(const size_t count, source_.Read(block_.data(), kBlockBytes));
      block_.resize(count);
      block_position_ = 0;
      if (count == 0) {
        if (partial_.empty() && !passing_) return Outcome::kEnd;
        line_ = partial_;
        return Finish();
      }
    }
    const std::string_view rest = std::string_view(block_).substr(block_position_);
    const size_t newline = rest.find('\n');
    const bool ends = newline != std::string_view::npos;
    const std::string_view piece = rest.substr(0, newline);
    block_position_ += piece.size() + (ends ? 1 : 0);
    bytes_taken_ += piece.size() + (ends ? 1 : 0);
    // One more than allowed, for a carriage return that does not count.
    if (partial_.size() + piece.size() > line_bytes_max_ + 1) {
      passing_ = true;
      partial_.clear();
      partial_.shrink_to_fit();
    }
    if (ends && partial_.empty()) {
      line_ = piece;  // the usual case: no copy
      return Finish();
    }
    if (!passing_) partial_ += piece;
    if (ends) {
      line_ = partial_;
      return Finish();
    }
  }
}

void LineReader::ReleaseLine() {
  if (partial_.capacity() <= kBlockBytes) return;
  line_ = {};
  std::string().swap(partial_);  // an assignment might keep the memory
}

LineReader::Outcome LineReader::Finish() {
  complete_ = true;
  ++line_number_;
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  if (passing_ || line_.size() > line_bytes_max_) {
    line_ = {};
    return Outcome::kTooLong;
  }
  return Outcome::kLine;
}

}  // namespace kvd::cli
