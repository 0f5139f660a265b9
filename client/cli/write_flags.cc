#include "client/cli/write_flags.h"

#include <charconv>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/time_text.h"

namespace kvd::cli {
namespace {

Condition ConditionOf(std::string_view word) {
  constexpr std::string_view kVersion = "version:";
  if (word == "absent") return {Condition::Kind::kIfAbsent};
  if (word == "present") return {Condition::Kind::kIfPresent};
  return {Condition::Kind::kIfVersion, ParseVersion(word.substr(kVersion.size())).value_or(0)};
}

}  // namespace

std::optional<uint64_t> ParseVersion(std::string_view text) {
  uint64_t version = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || rest != text.data() + text.size() || version == 0) {
    return std::nullopt;
  }
  return version;
}

std::optional<WriteOptions> WriteOptionsOf(Invocation& run, std::string_view subject) {
  const FlagValues& flags = run.flags();
  const auto is_set = [&flags](std::string_view name) {
    return flags.IsDeclared(name) && flags.IsSet(name);
  };
  WriteOptions options;
  if (is_set("ttl")) options.ttl = flags.Ttl("ttl");
  if (is_set("expire_at")) options.expiry_unix_us = flags.MomentUnixUs("expire_at");
  if (is_set("ttl") && is_set("expire_at")) {
    run.Fail(subject, UsageFailure("both --ttl and --expire_at say when it expires; give one"));
    return std::nullopt;
  }
  if (is_set("if")) options.condition = ConditionOf(flags.Text("if"));
  if (options.condition == Condition{Condition::Kind::kIfVersion, 0}) {
    run.Fail(subject,
             UsageFailure("no item has version 0; give one that 'kvcli get -w json' shows"));
    return std::nullopt;
  }
  if (is_set("flags")) {
    const uint64_t number = flags.Count("flags");
    if (number > std::numeric_limits<uint32_t>::max()) {
      run.Fail(subject, UsageFailure(absl::StrCat("--flags=", number,
                                                  " has more than 32 bits; give "
                                                  "at most 4294967295")));
      return std::nullopt;
    }
    options.user_flags = static_cast<uint32_t>(number);
  }
  return options;
}

void NoteOfPast(Invocation& run, std::string_view subject, const WriteOptions& options,
                KeyValueStore& store) {
  if (options.expiry_unix_us == 0 || options.expiry_unix_us > store.ServerUnixUs()) return;
  run.Note(subject,
           absl::StrCat("--expire_at has passed, the item has expired already; kvd's clock says ",
                        MomentText(store.ServerUnixUs())));
}

}  // namespace kvd::cli
