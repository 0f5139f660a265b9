// How far a load or dump has come: a bar while it runs, on a terminal, and a line at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/cli/console.h"

namespace kvd::cli {

struct ProgressCounts {
  uint64_t items = 0;
  uint64_t errors = 0;
  uint64_t bytes_done = 0;                   // of the input, where there is one
  std::optional<uint64_t> bytes_total = {};  // nothing where it is not known beforehand
};

// "load x.tsv [=====>    ]  52%  1204 items  60200/s  0 errors", at most `columns` wide. Without a
// total there is no bar.
std::string FormatProgress(std::string_view title, const ProgressCounts& counts, int64_t elapsed_ns,
                           size_t columns);

// "0.52 s, 2308 items/s, 1.4 MiB/s"; no rates for what was too short to have any. `bytes`: of keys
// and values.
std::string FormatPace(uint64_t items, uint64_t bytes, int64_t elapsed_ns);

class Progress {
 public:
  // Draws on console.err if that is a terminal and `enabled`, ten times a second at most.
  Progress(Console& console, std::string title, bool enabled);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Update(const ProgressCounts& counts);
  // Takes the bar away, so that a line of text can be printed; the next Update draws it again.
  void Clear();
  int64_t elapsed_ns() const { return console_.clock.NowMonotonicNs() - started_ns_; }

 private:
  Console& console_;
  const std::string title_;
  const bool drawing_;
  const int64_t started_ns_;
  int64_t next_draw_ns_;
  bool shown_ = false;
};

}  // namespace kvd::cli
