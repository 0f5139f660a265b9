#include "common/base/units.h"

#include <charconv>
#include <limits>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/string_view.h"

namespace kvd {
namespace {

constexpr char kForm[] = "a number of bytes with an optional suffix k, m, g or t, such as 64m";

// The factor of a suffix, or 0 if it is none.
uint64_t SuffixFactor(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix.size() > 1) return 0;
  switch (suffix[0]) {
    case 'k':
    case 'K':
      return kKiB;
    case 'm':
    case 'M':
      return kMiB;
    case 'g':
    case 'G':
      return kGiB;
    case 't':
    case 'T':
      return kTiB;
    default:
      return 0;
  }
}

std::string Quoted(std::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(ToAbsl(text)), "\"");
}

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const uint64_t factor = SuffixFactor({rest, static_cast<size_t>(end - rest)});
  if (error == std::errc::invalid_argument || factor == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("size ", Quoted(text), " is not understood; give ", kForm));
  }
  if (error == std::errc::result_out_of_range ||
      number > std::numeric_limits<uint64_t>::max() / factor) {
    return absl::OutOfRangeError(
        absl::StrCat("size ", Quoted(text), " is 2^64 bytes or more; give ", kForm));
  }
  return number * factor;
}

std::string FormatBytes(uint64_t size_bytes) {
  struct Unit {
    uint64_t factor;
    const char* name;
  };
  for (const Unit& unit :
       {Unit{kTiB, "TiB"}, Unit{kGiB, "GiB"}, Unit{kMiB, "MiB"}, Unit{kKiB, "KiB"}}) {
    if (size_bytes < unit.factor) continue;
    if (size_bytes % unit.factor == 0)
      return absl::StrCat(size_bytes / unit.factor, " ", unit.name);
    return absl::StrFormat(
        "%.1f %s", static_cast<double>(size_bytes) / static_cast<double>(unit.factor), unit.name);
  }
  return absl::StrCat(size_bytes, " B");
}

}  // namespace kvd
