// A line that was typed at the prompt, or came from a pipe, as a command's words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvd::cli {

// Splits at blanks, with a shell's quoting:
//   'single'  every byte as it is
//   "double"  \n \t \r \\ \" \xNN stand for a byte, anything else as it is
//   \c        outside of quotes: the character c
// Pieces without a blank between them are one word, quotes that hold nothing are an empty one, and
// a # where a word could begin starts a comment. InvalidArgument says what is not closed or is no
// escape, and at which byte (from 1).
absl::StatusOr<std::vector<std::string>> SplitCommandLine(std::string_view line);

}  // namespace kvd::cli
