// Times to live and moments, as people write them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kvd::cli {

// What keeps a text from being a time.
enum class TimeFault {
  kNone,
  kNotUnderstood,
  kTooFar,  // it is a time, beyond the longest or latest
};

// "60" or "1.5" (seconds), "500ms", "10m", "2h", "1d", "1d12h"; units us, ms, s, m, h, d, w. Above
// 0 and at most 36500 days. Nothing for anything else.
std::optional<std::chrono::microseconds> ParseTtl(std::string_view text);
TimeFault FaultOfTtl(std::string_view text);

// Seconds of Unix time with up to six decimals, or RFC 3339 ("2027-01-31T12:00:00Z",
// "2027-01-31T12:00:00.5+02:00"), as microseconds. After 1970 and before the year 10000; nothing
// for anything else.
std::optional<int64_t> ParseMoment(std::string_view text);
TimeFault FaultOfMoment(std::string_view text);

// RFC 3339 in UTC, to the microsecond where it is not a whole second.
std::string MomentText(int64_t unix_us);

// Seconds with as many decimals as they need, up to six.
std::string SecondsText(int64_t microseconds);

}  // namespace kvd::cli
