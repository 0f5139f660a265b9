#include "client/cli/flags.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/foreign_flags.h"
#include "client/cli/suggest.h"
#include "client/cli/text.h"
#include "client/cli/time_text.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

std::optional<uint64_t> ParseCount(std::string_view text) {
  uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<bool> ParseSwitch(std::string_view text) {
  for (const std::string_view yes : {"true", "1", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"false", "0", "no", "off"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

// "0.1", as redis-cli's -i takes it.
bool EndsInDigit(std::string_view text) {
  return !text.empty() && text.back() >= '0' && text.back() <= '9' &&
         text.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::optional<std::chrono::nanoseconds> ParseDuration(std::string_view text) {
  absl::Duration duration;
  if (const std::optional<uint64_t> seconds = ParseCount(text); seconds.has_value()) {
    duration = absl::Seconds(std::min<uint64_t>(*seconds, 1'000'000'000));
  } else if (!absl::ParseDuration(absl::StrCat(ToAbsl(text), EndsInDigit(text) ? "s" : ""),
                                  &duration)) {
    return std::nullopt;
  }
  if (duration < absl::Nanoseconds(1) || duration > absl::Hours(24)) return std::nullopt;
  return absl::ToChronoNanoseconds(duration);
}

std::optional<uint64_t> ParsePositiveBytes(std::string_view text) {
  const absl::StatusOr<uint64_t> bytes = ParseBytes(text);
  if (!bytes.ok() || *bytes == 0) return std::nullopt;
  return *bytes;
}

bool IsChoice(const Flag& flag, std::string_view text) {
  for (const std::string_view choice : ChoicesOf(flag)) {
    if (text == choice && !choice.ends_with(":N")) return true;
    const std::string_view word = choice.substr(0, choice.size() - 1);  // "version:"
    if (choice.ends_with(":N") && text.starts_with(word) && ParseCount(text.substr(word.size()))) {
      return true;
    }
  }
  return false;
}

constexpr char kNotUnderstood[] = " is not understood; ";

// The same for digits that are a number, only too large a one.
bool IsTooLarge(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string ComplaintOfCount(std::string_view text) {
  if (ParseCount(text)) return "";
  if (IsTooLarge(text)) return absl::StrCat(" is too large; give at most ", UINT64_MAX);
  return absl::StrCat(kNotUnderstood, "give a whole number, 0 or more");
}

std::string ComplaintOfBytes(std::string_view text) {
  if (ParsePositiveBytes(text)) return "";
  if (absl::IsOutOfRange(ParseBytes(text).status()))
    return " is too large; give less than 2^64 bytes";
  return absl::StrCat(
      kNotUnderstood,
      "give a number of bytes above 0, or one with a suffix k, m, g or t such as 64m");
}

std::string ComplaintOfTtl(std::string_view text) {
  switch (FaultOfTtl(text)) {
    case TimeFault::kNone:
      return "";
    case TimeFault::kTooFar:
      return " is too long; give at most 36500d, or 3153600000: without a unit it is seconds";
    case TimeFault::kNotUnderstood:
      break;
  }
  return absl::StrCat(kNotUnderstood, "give a time above 0 such as 60, 500ms, 10m, 2h or 1d");
}

std::string ComplaintOfMoment(std::string_view text) {
  switch (FaultOfMoment(text)) {
    case TimeFault::kNone:
      return "";
    case TimeFault::kTooFar:
      return " is too late; give at most 253402300799, the end of the year 9999: a number is "
             "seconds of Unix time, not milliseconds";
    case TimeFault::kNotUnderstood:
      break;
  }
  return absl::StrCat(kNotUnderstood, "give Unix seconds, or a time such as 2027-01-31T12:00:00Z");
}

std::string ComplaintOfChoice(const Flag& flag, std::string_view text) {
  if (IsChoice(flag, text)) return "";
  const std::vector<std::string_view> choices = ChoicesOf(flag);
  std::vector<std::string> words(choices.begin(), choices.end());
  return absl::StrCat(kNotUnderstood, words.size() == 1 ? "give " : "give one of ",
                      absl::StrJoin(words, ", "));
}

// What is wrong with `text` and what to do, to follow it; nothing if it is right.
std::string ComplaintOf(const Flag& flag, std::string_view text) {
  switch (flag.kind) {
    case FlagKind::kText:
      return "";
    case FlagKind::kSwitch:
      return ParseSwitch(text) ? "" : absl::StrCat(kNotUnderstood, "give true or false");
    case FlagKind::kCount:
      return ComplaintOfCount(text);
    case FlagKind::kBytes:
      return ComplaintOfBytes(text);
    case FlagKind::kDuration:
      return ParseDuration(text)
                 ? ""
                 : absl::StrCat(kNotUnderstood, "give a time of up to 24h such as 5s or 200ms");
    case FlagKind::kTtl:
      return ComplaintOfTtl(text);
    case FlagKind::kMoment:
      return ComplaintOfMoment(text);
    case FlagKind::kChoice:
      return ComplaintOfChoice(flag, text);
  }
  return "";
}

// What cannot be the value of a flag unless it is written behind '=': -5 and - can.
bool LooksLikeFlag(std::string_view argument) {
  return argument.size() > 1 && argument[0] == '-' && !(argument[1] >= '0' && argument[1] <= '9');
}

// `next`: what stands where the value should, and looks like a flag; empty: nothing does.
absl::Status NeedsValue(const Flag& flag, std::string_view shown, std::string_view next) {
  const std::string name(flag.name);
  std::string text = absl::StrCat(ToAbsl(shown), " needs a value");
  if (!next.empty()) absl::StrAppend(&text, ", and ", OneLine(next), " looks like a flag");
  absl::StrAppend(&text, "; give --", name, "=", ToAbsl(flag.placeholder));
  if (!next.empty() && flag.kind == FlagKind::kText) {
    absl::StrAppend(&text, ", or --", name, "=", OneLine(next), " if that is the value");
  }
  return absl::InvalidArgumentError(text);
}

std::string WithUnderscores(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

}  // namespace

std::vector<std::string_view> ChoicesOf(const Flag& flag) {
  std::vector<std::string_view> choices;
  if (flag.kind != FlagKind::kChoice) return choices;
  std::string_view rest = flag.placeholder;
  while (true) {
    const size_t bar = rest.find('|');
    choices.push_back(rest.substr(0, bar));
    if (bar == std::string_view::npos) return choices;
    rest.remove_prefix(bar + 1);
  }
}

std::vector<std::string_view> CompletionsOf(const Flag& flag) {
  std::vector<std::string_view> words = ChoicesOf(flag);
  for (std::string_view& word : words) {
    if (word.ends_with(":N")) word.remove_suffix(1);
  }
  return words;
}

std::string FlagUsage(const Flag& flag) {
  std::string usage =
      flag.letter != '\0' ? absl::StrCat("-", std::string(1, flag.letter), ", ") : "    ";
  absl::StrAppend(&usage, "--", ToAbsl(flag.name));
  if (!flag.placeholder.empty()) absl::StrAppend(&usage, "=", ToAbsl(flag.placeholder));
  return usage;
}

std::string EnvironmentName(const Flag& flag) {
  std::string name = "KVCLI_";
  for (const char c : flag.name)
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

void FlagValues::Declare(std::span<const Flag> flags) {
  for (const Flag& flag : flags) {
    values_.emplace(flag.name, Value{&flag, std::string(flag.default_value)});
  }
}

absl::Status FlagValues::TakeEnvironment(const Environment& environment) {
  for (auto& [name, value] : values_) {
    if (!value.flag->from_environment || std::exchange(value.environment_taken, true)) continue;
    const std::string variable = EnvironmentName(*value.flag);
    const char* text = environment(variable.c_str());
    if (text == nullptr || (*text == '\0' && value.flag->kind != FlagKind::kText)) continue;
    KVD_RETURN_IF_ERROR(Assign(value, variable, text));
  }
  return absl::OkStatus();
}

absl::Status FlagValues::Assign(Value& value, std::string_view shown, std::string_view text) {
  if (const std::string complaint = ComplaintOf(*value.flag, text); !complaint.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(ToAbsl(shown), "=", OneLine(text), complaint));
  }
  value.text = text;
  value.set = true;
  return absl::OkStatus();
}

absl::StatusOr<FlagValues::Value*> FlagValues::Find(std::string_view argument,
                                                    std::string_view name) {
  if (argument.starts_with("--")) {
    if (const auto found = values_.find(WithUnderscores(name)); found != values_.end()) {
      return &found->second;
    }
  } else {
    for (auto& [unused, value] : values_) {
      if (value.flag->letter != '\0' && name == std::string_view(&value.flag->letter, 1)) {
        return &value;
      }
    }
  }
  std::vector<std::string_view> names;
  for (const auto& [known, unused] : values_) names.push_back(known);
  std::string meant(MeaningOfForeignFlag(
      WithUnderscores(name), [this](std::string_view flag) { return IsDeclared(flag); }));
  if (meant.empty()) {
    const std::string_view near = Nearest(WithUnderscores(name), names);
    if (!near.empty()) meant = absl::StrCat("--", ToAbsl(near));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag ", OneLine(argument.substr(0, argument.find('='))),
                   meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?")));
}

absl::StatusOr<std::vector<std::string>> FlagValues::TakeArguments(
    std::span<const std::string> arguments, const TakeOptions& options) {
  std::vector<std::string> rest;
  std::map<const Value*, std::string_view> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const bool is_flag = LooksLikeFlag(argument);
    if (argument == "--" || (!is_flag && options.leading_only)) {
      // The command itself may follow a leading "--"; the one that ends a command's flags goes.
      const size_t from = i + (argument == "--" ? 1 : 0);
      rest.insert(rest.end(), arguments.begin() + static_cast<ptrdiff_t>(from), arguments.end());
      break;
    }
    if (!is_flag) {
      rest.emplace_back(argument);
      continue;
    }
    const bool is_long = argument.starts_with("--");
    const size_t equals = is_long ? argument.find('=') : std::string_view::npos;
    const std::string_view name =
        is_long ? argument.substr(2, equals == std::string_view::npos ? equals : equals - 2)
                : argument.substr(1, 1);
    KVD_ASSIGN_OR_RETURN(Value * value, Find(argument, name));
    const std::string shown =
        is_long ? absl::StrCat("--", ToAbsl(name)) : absl::StrCat("-", ToAbsl(name));
    std::string_view text;
    if (equals != std::string_view::npos) {
      text = argument.substr(equals + 1);
    } else if (!is_long && argument.size() > 2) {
      text = argument.substr(argument[2] == '=' ? 3 : 2);
    } else if (value->flag->kind == FlagKind::kSwitch) {
      text = "true";
    } else if (i + 1 == arguments.size()) {
      return NeedsValue(*value->flag, shown, "");
    } else if (LooksLikeFlag(arguments[i + 1])) {
      return NeedsValue(*value->flag, shown, arguments[i + 1]);
    } else {
      text = arguments[++i];
    }
    const auto [earlier, first] = given.try_emplace(value, text);
    if (options.once && !first && earlier->second != text) {
      return absl::InvalidArgumentError(absl::StrCat(ToAbsl(shown), " is given twice, as ",
                                                     Quoted(earlier->second), " and as ",
                                                     Quoted(text), "; give one"));
    }
    KVD_RETURN_IF_ERROR(Assign(*value, shown, text));
  }
  return rest;
}

const FlagValues::Value& FlagValues::Of(std::string_view name) const {
  const auto found = values_.find(name);
  KVD_CHECK(found != values_.end());
  return found->second;
}

bool FlagValues::IsSet(std::string_view name) const { return Of(name).set; }

const std::string& FlagValues::Text(std::string_view name) const { return Of(name).text; }

bool FlagValues::Switch(std::string_view name) const {
  return ParseSwitch(Of(name).text).value_or(false);
}

uint64_t FlagValues::Count(std::string_view name) const {
  const Value& value = Of(name);
  return value.flag->kind == FlagKind::kBytes ? ParsePositiveBytes(value.text).value_or(0)
                                              : ParseCount(value.text).value_or(0);
}

std::chrono::nanoseconds FlagValues::Duration(std::string_view name) const {
  return ParseDuration(Of(name).text).value_or(std::chrono::nanoseconds(0));
}

std::chrono::microseconds FlagValues::Ttl(std::string_view name) const {
  return ParseTtl(Of(name).text).value_or(std::chrono::microseconds(0));
}

int64_t FlagValues::MomentUnixUs(std::string_view name) const {
  return ParseMoment(Of(name).text).value_or(0);
}

}  // namespace kvd::cli
