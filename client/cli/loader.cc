#include "client/cli/loader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

// What may be under way: enough that neither side waits for the other, and little memory.
constexpr size_t kLinesMax = 512;
constexpr size_t kBytesMax = size_t{32} << 20;
// Capacity for the next line's value; what is more is given up.
constexpr size_t kValueBytesKept = size_t{1} << 20;

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

}  // namespace

absl::Status Loader::Run(const OnError& on_error, const OnProgress& on_progress) {
  absl::Status status = TakeLines(on_error, on_progress);
  // What was started before an error takes effect all the same, and counts.
  const uint64_t line_number = line_number_;
  const auto go_on = [](const LoadCounts&) { return true; };
  while (!taken_.empty()) {
    absl::Status later = Await(on_error, go_on, [this] { return taken_.empty(); });
    if (status.ok()) {
      status = std::move(later);
    } else {
      line_number_ = line_number;
    }
  }
  return status;
}

absl::Status Loader::TakeLines(const OnError& on_error, const OnProgress& on_progress) {
  while (true) {
    if (!lines_.HoldsLine()) {
      // Nothing that was started may wait, and pass its deadline, because the input is slow.
      KVD_RETURN_IF_ERROR(Await(on_error, on_progress, [this] { return taken_.empty(); }));
    }
    const absl::StatusOr<LineReader::Outcome> outcome = lines_.Next();
    counts_.bytes_taken = lines_.bytes_taken();
    if (!outcome.ok()) {
      input_failed_ = !absl::IsCancelled(outcome.status());
      return outcome.status();
    }
    if (*outcome == LineReader::Outcome::kEnd) return absl::OkStatus();
    line_number_ = lines_.line_number();
    if (*outcome == LineReader::Outcome::kTooLong) {
      TakeBadLine(absl::StrCat("longer than ", lines_.line_bytes_max(),
                               " bytes; give a larger --max_line to load it"));
    } else if (TakeLine(lines_.line())) {
      lines_.ReleaseLine();
      KVD_RETURN_IF_ERROR(Await(on_error, on_progress, [this] { return HasRoom(); }));
      TakeItem();
    }
    KVD_RETURN_IF_ERROR(Settle(on_error));
    if (!on_progress(counts_)) return absl::CancelledError("interrupted");
  }
}

bool Loader::TakeLine(std::string_view line) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (lines_.line_number() == 1 && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (IsBlank(line)) return false;
  if (!options_.format.has_value()) options_.format = FormatOfLine(line);
  const absl::Status parsed = ParseItemLine(*options_.format, options_.separator, line, item_);
  if (!parsed.ok()) {
    TakeBadLine(ToStd(parsed.message()));
    return false;
  }
  int64_t& expiry_unix_us = item_.traits.expiry_unix_us;
  if (expiry_unix_us == 0) expiry_unix_us = options_.expiry_unix_us;
  if (expiry_unix_us != 0 && expiry_unix_us <= store_.ServerUnixUs()) {
    ++counts_.expired;
    return false;
  }
  return true;
}

void Loader::TakeBadLine(std::string_view why) {
  Line& line = taken_.emplace_back();
  line.number = lines_.line_number();
  line.bad = why;
}

bool Loader::HasRoom() const {
  const size_t bytes = item_.key.size() + item_.value.size();
  return keys_under_way_.empty() ||
         (taken_.size() < kLinesMax && bytes_under_way_ + bytes <= kBytesMax &&
          !keys_under_way_.contains(item_.key));
}

void Loader::TakeItem() {
  Line& line = taken_.emplace_back();
  line.number = lines_.line_number();
  line.key = item_.key;
  line.item_bytes = item_.key.size() + item_.value.size();
  line.under_way = true;
  keys_under_way_.insert(line.key);
  bytes_under_way_ += line.item_bytes;
  WriteOptions options;
  options.expiry_unix_us = item_.traits.expiry_unix_us;
  if (options.expiry_unix_us == 0) options.ttl = options_.ttl;
  options.user_flags = item_.traits.user_flags;
  store_.StartPut(item_.key, item_.value, options, [this, &line](const absl::Status& status) {
    line.status = status;
    line.under_way = false;
    keys_under_way_.erase(line.key);
    bytes_under_way_ -= line.item_bytes;
  });
  if (item_.value.capacity() > kValueBytesKept) std::string().swap(item_.value);
}

absl::Status Loader::Await(const OnError& on_error, const OnProgress& on_progress,
                           const std::function<bool()>& ready) {
  while (!ready()) {
    store_.WaitForStarted();
    KVD_RETURN_IF_ERROR(Settle(on_error));
    if (!on_progress(counts_)) return absl::CancelledError("interrupted");
  }
  return absl::OkStatus();
}

absl::Status Loader::Settle(const OnError& on_error) {
  while (!taken_.empty() && !taken_.front().under_way) {
    const Line line = std::move(taken_.front());
    taken_.pop_front();
    if (absl::Status status = Count(line, on_error); !status.ok()) {
      line_number_ = line.number;
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Loader::Count(const Line& line, const OnError& on_error) {
  if (!line.bad.empty()) {
    ++counts_.bad_lines;
    on_error(line.number, line.bad);
    return absl::OkStatus();
  }
  if (line.status.ok()) {
    ++counts_.items;
    counts_.item_bytes += line.item_bytes;
    return absl::OkStatus();
  }
  if (absl::IsResourceExhausted(line.status)) {
    ++counts_.refused;
    if (counts_.no_room++ == 0) no_room_ = {line.number, line.status};
    return absl::OkStatus();
  }
  if (absl::IsInvalidArgument(line.status)) {
    ++counts_.bad_lines;
  } else if (absl::IsOutOfRange(line.status)) {
    ++counts_.refused;
  } else {
    return line.status;
  }
  on_error(line.number, absl::StrCat("key ", Quoted(line.key), ": ", line.status.message()));
  return absl::OkStatus();
}

}  // namespace kvd::cli
