// Puts the items of lines into a store, and keeps count.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/cli/item_format.h"
#include "client/cli/line_reader.h"
#include "client/cli/store.h"

namespace kvd::cli {

struct LoadCounts {
  uint64_t items = 0;        // stored
  uint64_t item_bytes = 0;   // keys and values of these
  uint64_t bad_lines = 0;    // no item in them, or one with a key that cannot be
  uint64_t refused = 0;      // by the server
  uint64_t bytes_taken = 0;  // of the input
};

class Loader {
 public:
  struct Options {
    std::optional<ItemFormat> format;  // nothing: told by the first line
    std::string separator;             // for kDelimited
  };
  // Called for each line that was not stored, with its number and the reason.
  using OnError = std::function<void(uint64_t line_number, std::string_view reason)>;
  // Called after each line; false ends the load.
  using OnLine = std::function<bool(const LoadCounts& counts)>;

  Loader(KeyValueStore& store, LineReader& lines, Options options)
      : store_(store), lines_(lines), options_(std::move(options)) {}

  // Until the last line. Lines that hold nothing are passed over. An error is what ended it
  // earlier: Cancelled, by OnLine or a signal; `input_failed()`, the source's; otherwise the
  // store's, of a kind that the next item would meet too.
  absl::Status Run(const OnError& on_error, const OnLine& on_line);

  const LoadCounts& counts() const { return counts_; }
  bool input_failed() const { return input_failed_; }

 private:
  absl::Status TakeLine(std::string_view line, const OnError& on_error);

  KeyValueStore& store_;
  LineReader& lines_;
  Options options_;
  Item item_;
  LoadCounts counts_;
  bool input_failed_ = false;
};

}  // namespace kvd::cli
