#include "client/cli/loader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

// About this one item only, so the next may fare better.
bool IsRefusal(const absl::Status& status) {
  return absl::IsOutOfRange(status) || absl::IsResourceExhausted(status);
}

}  // namespace

absl::Status Loader::Run(const OnError& on_error, const OnLine& on_line) {
  while (true) {
    const absl::StatusOr<LineReader::Outcome> outcome = lines_.Next();
    counts_.bytes_taken = lines_.bytes_taken();
    if (!outcome.ok()) {
      input_failed_ = !absl::IsCancelled(outcome.status());
      return outcome.status();
    }
    if (*outcome == LineReader::Outcome::kEnd) return absl::OkStatus();
    if (*outcome == LineReader::Outcome::kTooLong) {
      ++counts_.bad_lines;
      on_error(lines_.line_number(), "longer than --max_line allows");
    } else {
      KVD_RETURN_IF_ERROR(TakeLine(lines_.line(), on_error));
    }
    if (!on_line(counts_)) return absl::CancelledError("interrupted");
  }
}

absl::Status Loader::TakeLine(std::string_view line, const OnError& on_error) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (lines_.line_number() == 1 && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (IsBlank(line)) return absl::OkStatus();
  if (!options_.format.has_value()) options_.format = FormatOfLine(line);
  const absl::Status parsed = ParseItemLine(*options_.format, options_.separator, line, item_);
  if (!parsed.ok()) {
    ++counts_.bad_lines;
    on_error(lines_.line_number(), ToStd(parsed.message()));
    return absl::OkStatus();
  }
  const absl::Status stored = store_.Put(item_.key, item_.value).status();
  if (stored.ok()) {
    ++counts_.items;
    counts_.item_bytes += item_.key.size() + item_.value.size();
    return absl::OkStatus();
  }
  if (absl::IsInvalidArgument(stored)) {
    ++counts_.bad_lines;
  } else if (IsRefusal(stored)) {
    ++counts_.refused;
  } else {
    return stored;
  }
  on_error(lines_.line_number(), absl::StrCat("key ", Quoted(item_.key), ": ", stored.message()));
  return absl::OkStatus();
}

}  // namespace kvd::cli
