// incr, decr: values that are numbers.
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

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

ExitCode Add(Invocation& run, bool negative) {
  const std::string& subject = run.arguments().front();
  const std::optional<WriteOptions> options = WriteOptionsOf(run, subject);
  if (!options.has_value()) return ExitCode::kUsage;
  std::string key;
  if (!run.BytesOfArgument(subject, key)) return ExitCode::kUsage;
  const std::string delta_text = run.arguments().size() > 1 ? run.arguments()[1] : "1";
  const std::optional<int64_t> delta = ParseNumber(delta_text);
  if (!delta.has_value() || (negative && *delta == std::numeric_limits<int64_t>::min())) {
    return run.Fail(subject,
                    UsageFailure(absl::StrCat(Quoted(delta_text),
                                              " is nothing to count by; give a whole number "
                                              "of at most 63 bits")));
  }
  KeyValueStore* store = run.Store();
  if (store == nullptr) return run.connect_failure();
  const absl::StatusOr<Incremented> result =
      store->Increment(key, negative ? -*delta : *delta, *options);
  if (!result.ok()) return run.Fail(subject, StoreFailure(result.status()));
  Print(run, key, *result);
  return ExitCode::kDone;
}

ExitCode RunIncr(Invocation& run) { return Add(run, false); }
ExitCode RunDecr(Invocation& run) { return Add(run, true); }

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
        "Exit status 2: the value is no such number; 5: the sum would have more than 64 bits.\n"
        "Either changes nothing.\n",
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
    .details = "As incr, the other way. The number may become negative.\n",
    .examples =
        "kvcli decr seats\n"
        "kvcli decr seats 2 --if=present\n",
    .flags = kIncrementFlags,
    .arguments_min = 1,
    .arguments_max = 2,
    .run = RunDecr,
};

}  // namespace kvd::cli
