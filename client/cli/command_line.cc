#include "client/cli/command_line.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/status_macros.h"

namespace kvd::cli {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class Splitter {
 public:
  explicit Splitter(std::string_view line) : line_(line) {}

  absl::StatusOr<std::vector<std::string>> Split() {
    while (true) {
      while (!AtEnd() && IsBlank(line_[position_])) ++position_;
      if (AtEnd() || line_[position_] == '#') return std::move(words_);
      std::string& word = words_.emplace_back();
      while (!AtEnd() && !IsBlank(line_[position_])) KVD_RETURN_IF_ERROR(TakePiece(word));
    }
  }

 private:
  bool AtEnd() const { return position_ == line_.size(); }

  absl::Status TakePiece(std::string& word) {
    const char c = line_[position_];
    if (c == '\'') return TakeSingleQuoted(word);
    if (c == '"') return TakeDoubleQuoted(word);
    if (c == '\\') {
      if (position_ + 1 == line_.size()) return Wrong("nothing follows the backslash", position_);
      ++position_;
    }
    word += line_[position_++];
    return absl::OkStatus();
  }

  absl::Status TakeSingleQuoted(std::string& word) {
    const size_t end = line_.find('\'', position_ + 1);
    if (end == std::string_view::npos) return Wrong("the single quote is not closed", position_);
    word += line_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return absl::OkStatus();
  }

  absl::Status TakeDoubleQuoted(std::string& word) {
    const size_t start = position_++;
    while (true) {
      if (AtEnd()) return Wrong("the double quote is not closed", start);
      const char c = line_[position_++];
      if (c == '"') return absl::OkStatus();
      if (c != '\\') {
        word += c;
      } else {
        KVD_RETURN_IF_ERROR(TakeEscape(word));
      }
    }
  }

  // After a backslash within double quotes.
  absl::Status TakeEscape(std::string& word) {
    const size_t start = position_ - 1;
    const char kind = AtEnd() ? '\0' : line_[position_++];
    switch (kind) {
      case 'n':
        word += '\n';
        return absl::OkStatus();
      case 't':
        word += '\t';
        return absl::OkStatus();
      case 'r':
        word += '\r';
        return absl::OkStatus();
      case '\\':
      case '"':
        word += kind;
        return absl::OkStatus();
      case 'x':
        if (const auto byte = BytesOfHex(line_.substr(position_, 2)); byte && byte->size() == 1) {
          word += *byte;
          position_ += 2;
          return absl::OkStatus();
        }
        [[fallthrough]];
      default:
        return Wrong("no escape (\\n \\t \\r \\\\ \\\" \\xNN) follows the backslash", start);
    }
  }

  static absl::Status Wrong(std::string_view what, size_t position) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(what), " at byte ", position + 1,
                     "; quote like a shell: 'as it is', \"with \\xNN\""));
  }

  const std::string_view line_;
  size_t position_ = 0;
  std::vector<std::string> words_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitCommandLine(std::string_view line) {
  return Splitter(line).Split();
}

}  // namespace kvd::cli
