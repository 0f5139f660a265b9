// Puts the items of lines into a store, and keeps count.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

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
  uint64_t no_room = 0;      // of these, because its memory is full
  uint64_t expired = 0;      // whose time had passed; not stored
  uint64_t bytes_taken = 0;  // of the input
};

// Many PUTs are under way at once, never two of one key: of several lines with one key the last one
// counts. Whatever is told is told in the order of the lines.
class Loader {
 public:
  struct Options {
    std::optional<ItemFormat> format;  // nothing: told by the first line
    std::string separator;             // for kDelimited
    // Of items whose lines do not say when they expire: from when they are stored, or the moment.
    // At most one of them; 0: not given.
    std::chrono::microseconds ttl{0};
    int64_t expiry_unix_us = 0;
  };
  // Called for each line that was not stored, with its number and the reason; not for want of room,
  // where the next line is likely to say the same: no_room() tells of those.
  using OnError = std::function<void(uint64_t line_number, std::string_view reason)>;
  // Called after each line that was taken, and while it waits for the server; false ends the load.
  using OnProgress = std::function<bool(const LoadCounts& counts)>;

  // `store` has nothing else under way.
  Loader(KeyValueStore& store, LineReader& lines, Options options)
      : store_(store), lines_(lines), options_(std::move(options)) {}

  // Until the last line, and the end of all that was started. Lines that hold nothing are passed
  // over. An error is what ended it earlier: Cancelled, by OnProgress or a signal;
  // `input_failed()`, the source's; otherwise the store's, of a kind that the next item would meet
  // too.
  absl::Status Run(const OnError& on_error, const OnProgress& on_progress);

  const LoadCounts& counts() const { return counts_; }
  bool input_failed() const { return input_failed_; }
  // Of the first of counts().no_room: its line, and what the server said.
  struct NoRoom {
    uint64_t line_number = 0;
    absl::Status status;
  };
  const NoRoom& no_room() const { return no_room_; }
  // Where it ended: of the line that met the error, or the last one that was taken.
  uint64_t line_number() const { return line_number_; }

 private:
  // A line that was taken and not yet counted.
  struct Line {
    uint64_t number = 0;
    std::string key;  // of a PUT
    size_t item_bytes = 0;
    bool under_way = false;
    absl::Status status;
    std::string bad;  // why it holds no item; empty: a PUT
  };

  absl::Status TakeLines(const OnError& on_error, const OnProgress& on_progress);
  // True: item_ holds an item. Otherwise nothing is to be put.
  bool TakeLine(std::string_view line);
  void TakeBadLine(std::string_view why);
  void TakeItem();
  // Counts what has ended, in order. Ok, or the first error that ends the load.
  absl::Status Settle(const OnError& on_error);
  absl::Status Count(const Line& line, const OnError& on_error);
  // Waits until `ready` is true.
  absl::Status Await(const OnError& on_error, const OnProgress& on_progress,
                     const std::function<bool()>& ready);
  bool HasRoom() const;

  KeyValueStore& store_;
  LineReader& lines_;
  Options options_;
  Item item_;
  LoadCounts counts_;
  NoRoom no_room_;
  bool input_failed_ = false;
  uint64_t line_number_ = 0;
  std::deque<Line> taken_;  // references stay valid as others come and go
  std::unordered_set<std::string> keys_under_way_;
  size_t bytes_under_way_ = 0;
};

}  // namespace kvd::cli
