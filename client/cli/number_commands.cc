// incr, decr: values that are numbers.
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/invocation.h"
#include "client/cli/item_text.h"
#include "client/cli/table.h"
#include "client/cli/text.h"
#include "client/cli/write_flags.h"

namespace kvd::cli {
namespace {

constexpr Flag kIncrementFlags[] = {kTtlFlag, kExpireAtFlag, kIfFlag};

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

constexpr std::string_view kNothingCounted =
    "not found, and --if asks for an item, so nothing was counted; leave --if out to count from 0";

std::optional<int64_t> ParseNumber(std::string_view text) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

// As JsonNumber, of either sign.
std::string JsonSigned(int64_t number) {
  constexpr int64_t kExact = int64_t{1} << 53;
  const bool exact = number < kExact && number > -kExact;
  return exact ? absl::StrCat(number) : absl::StrCat("\"", number, "\"");
}

void Print(Invocation& run, std::string_view key, const Incremented& result) {
  std::string text;
  switch (run.format()) {
    case OutputFormat::kSimple:
      text = absl::StrCat(result.value, "\n");
      break;
    case OutputFormat::kJson:
      text = "{";
      AppendJsonBytes("key", key, run.byte_text(), text);
      absl::StrAppend(&text, ",\"number\":", JsonSigned(result.value),
                      ",\"version\":", JsonNumber(result.version), "}\n");
      break;
    case OutputFormat::kTable:
      text = FormatTable(
          {"KEY", "NUMBER", "VERSION"},
          {{CellText(key, run.hex()), absl::StrCat(result.value), absl::StrCat(result.version)}});
      break;
  }
  run.console().out.Write(text);
}

enum class Direction { kUp, kDown };

// Of the DELTA that was given.
Failure NoDelta(std::string_view text, Direction direction) {
  // What is taken off is added with the other sign, which the smallest number has not.
  const int64_t min = direction == Direction::kUp ? kMin : -kMax;
  return UsageFailure(absl::StrCat(
      Quoted(text), " is nothing to count by; give a whole number from ", min, " to ", kMax));
}

// Told from a key that cannot be, which has the same code and is no matter of what is stored.
bool IsOfNoNumber(const absl::Status& status) {
  return absl::IsInvalidArgument(status) && absl::StartsWith(status.message(), "the value is ");
}

Failure NoNumber() {
  return {ExitCode::kRefused,
          "the value is not a signed 64-bit number in decimal, and is unchanged; 'kvcli get' shows "
          "it, 'kvcli put' replaces it by a number"};
}

Failure TooFar(Direction direction) {
  return {ExitCode::kRefused,
          absl::StrCat("the ", direction == Direction::kUp ? "sum" : "difference",
                       " is not within ", kMin, " and ", kMax,
                       ", so the value is unchanged; count by less, or put another number")};
}

ExitCode Add(Invocation& run, Direction direction) {
  const std::string& subject = run.arguments().front();
  const std::optional<WriteOptions> options = WriteOptionsOf(run, subject);
  if (!options.has_value()) return ExitCode::kUsage;
  std::string key;
  if (!run.BytesOfArgument(subject, key)) return ExitCode::kUsage;
  const std::string delta_text = run.arguments().size() > 1 ? run.arguments()[1] : "1";
  const std::optional<int64_t> delta = ParseNumber(delta_text);
  if (!delta.has_value() || (direction == Direction::kDown && *delta == kMin)) {
    return run.Fail(subject, NoDelta(delta_text, direction));
  }
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  const absl::StatusOr<Incremented> result =
      store->Increment(key, direction == Direction::kUp ? *delta : -*delta, *options);
  if (IsOfNoNumber(result.status())) return run.Fail(subject, NoNumber());
  if (absl::IsOutOfRange(result.status())) return run.Fail(subject, TooFar(direction));
  if (!result.ok()) return run.FailOfStore(subject, result.status());
  Print(run, key, *result);
  NoteOfPast(run, subject, *options, *store);
  return ExitCode::kDone;
}

ExitCode RunIncr(Invocation& run) { return Add(run, Direction::kUp); }
ExitCode RunDecr(Invocation& run) { return Add(run, Direction::kDown); }

}  // namespace

constinit const Command kIncrCommand = {
    .name = "incr",
    .arguments = "KEY [DELTA]",
    .summary = "add to a number, and print it",
    .details =
        "DELTA is 1 without it, and may be negative. A key without an item counts as 0, unless\n"
        "--if asks for one. The value is a signed 64-bit number in decimal, as put stores it: "
        "-12.\n"
        "Without --ttl and --expire_at the item expires when it would have.\n"
        "Exit status 5: the value is no such number, or the sum would have more than 64 bits.\n"
        "Either changes nothing.\n",
    .not_found = kNothingCounted,
    .examples =
        "kvcli incr visits\n"
        "kvcli incr visits 10\n"
        "kvcli incr requests:10.0.0.7 --ttl=1m\n",
    .flags = kIncrementFlags,
    .arguments_min = 1,
    .arguments_max = 2,
    .run = RunIncr,
};

constinit const Command kDecrCommand = {
    .name = "decr",
    .arguments = "KEY [DELTA]",
    .summary = "subtract from a number, and print it",
    .details =
        "As incr, the other way: DELTA is taken off, and may be negative as well. The number may\n"
        "become negative. Exit status 5: the value is no number, or the difference would have\n"
        "more than 64 bits. Either changes nothing.\n",
    .not_found = kNothingCounted,
    .examples =
        "kvcli decr seats\n"
        "kvcli decr seats 2 --if=present\n",
    .flags = kIncrementFlags,
    .arguments_min = 1,
    .arguments_max = 2,
    .run = RunDecr,
};

}  // namespace kvd::cli
