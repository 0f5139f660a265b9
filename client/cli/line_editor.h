// Where the prompt's lines come from.
#pragma once

#include <memory>
#include <string>

namespace kvd::cli {

class LineEditor {
 public:
  enum class Outcome { kLine, kCancelled, kEnd };

  virtual ~LineEditor() = default;
  // Shows `prompt` and waits for a line. kCancelled: Ctrl-C; kEnd: Ctrl-D, or the terminal is gone.
  virtual Outcome ReadLine(const std::string& prompt, std::string& line) = 0;
  // Keeps `line`, in memory and in the history file.
  virtual void Remember(const std::string& line) = 0;
};

// On the process's own terminal, through libedit. Lines are kept in `history_path` (empty: not),
// which only its owner may read. One at a time.
std::unique_ptr<LineEditor> MakeTerminalLineEditor(const std::string& history_path);

}  // namespace kvd::cli
