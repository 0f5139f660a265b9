#include "client/cli/time_text.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kDayUs = 24 * 3600 * kSecondUs;
constexpr int64_t kTtlMaxUs = 36'500 * kDayUs;
constexpr int64_t kMomentMaxUs = 253'402'300'799 * kSecondUs;  // the end of the year 9999

struct Unit {
  std::string_view name;
  int64_t microseconds;
};

constexpr Unit kUnits[] = {
    {"us", 1},
    {"ms", 1000},
    {"s", kSecondUs},
    {"m", 60 * kSecondUs},
    {"h", 3600 * kSecondUs},
    {"d", kDayUs},
    {"w", 7 * kDayUs},
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Wide enough for any number of digits that fits 64 bits, in millionths, times any unit.
using Wide = __int128;

// Takes digits off the front of `text`; nothing if there are none. More than fit are as many as
// fit: too far for any purpose here.
std::optional<int64_t> TakeDigits(std::string_view& text) {
  int64_t number = 0;
  if (text.empty() || !IsDigit(text[0])) return std::nullopt;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) number = std::numeric_limits<int64_t>::max();
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  return number;
}

// A number with up to six decimals, in millionths.
std::optional<Wide> TakeMillionths(std::string_view& text) {
  const std::optional<int64_t> whole = TakeDigits(text);
  if (!whole.has_value()) return std::nullopt;
  Wide millionths = Wide{*whole} * kSecondUs;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    int64_t worth = kSecondUs / 10;
    if (text.empty() || !IsDigit(text[0])) return std::nullopt;
    for (; !text.empty() && IsDigit(text[0]); text.remove_prefix(1), worth /= 10) {
      if (worth == 0) return std::nullopt;
      millionths += (text[0] - '0') * worth;
    }
  }
  return millionths;
}

std::optional<int64_t> TakeUnit(std::string_view& text) {
  if (text.empty()) return kSecondUs;
  const size_t end = text.find_first_of("0123456789.");
  const std::string_view name = text.substr(0, end);
  for (const Unit& unit : kUnits) {
    if (unit.name != name) continue;
    text.remove_prefix(name.size());
    return unit.microseconds;
  }
  return std::nullopt;
}

// Microseconds, or why there are none.
struct Parsed {
  TimeFault fault = TimeFault::kNotUnderstood;
  int64_t microseconds = 0;
};

Parsed UpTo(int64_t max_us, Wide microseconds) {
  if (microseconds <= 0) return {};
  if (microseconds > max_us) return {TimeFault::kTooFar};
  return {TimeFault::kNone, static_cast<int64_t>(microseconds)};
}

Parsed TtlOf(std::string_view text) {
  Wide sum_us = 0;
  do {
    const std::optional<Wide> number = TakeMillionths(text);
    if (!number.has_value()) return {};
    // A number without a unit is seconds where it stands alone.
    if (text.empty() && sum_us != 0) return {};
    const std::optional<int64_t> unit = TakeUnit(text);
    if (!unit.has_value()) return {};
    sum_us = std::min(sum_us + *number * *unit / kSecondUs, Wide{kTtlMaxUs} + 1);
  } while (!text.empty());
  return UpTo(kTtlMaxUs, sum_us);
}

Parsed MomentOf(std::string_view text) {
  std::string_view rest = text;
  if (const auto seconds = TakeMillionths(rest); seconds.has_value() && rest.empty()) {
    return UpTo(kMomentMaxUs, *seconds);
  }
  absl::Time time;
  if (text.empty() || !IsDigit(text[0]) ||  // "infinite-future" would do for absl
      !absl::ParseTime(absl::RFC3339_full, ToAbsl(text), &time, nullptr)) {
    return {};
  }
  return UpTo(kMomentMaxUs, absl::ToUnixMicros(time));
}

}  // namespace

std::optional<std::chrono::microseconds> ParseTtl(std::string_view text) {
  const Parsed parsed = TtlOf(text);
  if (parsed.fault != TimeFault::kNone) return std::nullopt;
  return std::chrono::microseconds(parsed.microseconds);
}

TimeFault FaultOfTtl(std::string_view text) { return TtlOf(text).fault; }

std::optional<int64_t> ParseMoment(std::string_view text) {
  const Parsed parsed = MomentOf(text);
  if (parsed.fault != TimeFault::kNone) return std::nullopt;
  return parsed.microseconds;
}

TimeFault FaultOfMoment(std::string_view text) { return MomentOf(text).fault; }

std::string MomentText(int64_t unix_us) {
  const char* format = unix_us % kSecondUs == 0 ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%dT%H:%M:%E6SZ";
  return absl::FormatTime(format, absl::FromUnixMicros(unix_us), absl::UTCTimeZone());
}

std::string SecondsText(int64_t microseconds) {
  std::string text = absl::StrFormat("%d.%06d", microseconds / kSecondUs, microseconds % kSecondUs);
  text.resize(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace kvd::cli
