// kvcli's flags: one table gives parsing, environment variables, --help and completion.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kvd::cli {

enum class FlagKind {
  kSwitch,  // --name, or --name=true|false
  kText,
  kChoice,    // one of the words in its placeholder; "word:N" there takes any number for N
  kCount,     // 0 or more
  kDuration,  // 5s, 200ms, 1m30s; a bare number is seconds; above 0, at most a day
  kBytes,     // 64m; above 0
  kTtl,       // 60, 500ms, 10m, 2h, 1d: see time_text.h
  kMoment,    // Unix seconds, or RFC 3339
};

struct Flag {
  std::string_view name;  // with underscores; dashes are taken as well
  char letter;            // -w; '\0': none
  FlagKind kind;
  std::string_view placeholder;  // "PATH", "simple|json|table"
  std::string_view default_value;
  std::string_view help;
  bool from_environment = true;  // as KVCLI_NAME
};

// Values of flags, each valid for its kind. Getters may be called for declared flags only.
class FlagValues {
 public:
  // Makes `flags` known, with their defaults. They must outlive this object.
  void Declare(std::span<const Flag> flags);

  // Takes KVCLI_<NAME> of every declared flag that it has not yet looked up. One that is set but
  // empty counts only for a kText flag. InvalidArgument names the variable.
  using Environment = std::function<const char*(const char*)>;
  absl::Status TakeEnvironment(const Environment& environment);

  // Takes flags out of `arguments` and returns what remains, in order: --name=value, --name value,
  // -l value, -lvalue; "--" ends flags, and -5 is a number. A value that looks like a flag has to
  // be written behind '='. InvalidArgument says which flag is wrong, how, and, where that is known,
  // what may have been meant or what to do.
  struct TakeOptions {
    bool leading_only = false;  // stop in front of the first argument that is no flag
    // A flag that `arguments` hold twice with different values is wrong. Otherwise the last counts.
    bool once = false;
  };
  absl::StatusOr<std::vector<std::string>> TakeArguments(std::span<const std::string> arguments,
                                                         const TakeOptions& options);

  bool IsDeclared(std::string_view name) const { return values_.contains(name); }

  // Given on the command line or in the environment.
  bool IsSet(std::string_view name) const;

  const std::string& Text(std::string_view name) const;  // kText, kChoice
  bool Switch(std::string_view name) const;
  uint64_t Count(std::string_view name) const;  // kCount, kBytes
  std::chrono::nanoseconds Duration(std::string_view name) const;
  std::chrono::microseconds Ttl(std::string_view name) const;  // 0: not set
  int64_t MomentUnixUs(std::string_view name) const;           // 0: not set

 private:
  struct Value {
    const Flag* flag;
    std::string text;
    bool set = false;
    bool environment_taken = false;
  };

  const Value& Of(std::string_view name) const;
  absl::StatusOr<Value*> Find(std::string_view argument, std::string_view name);
  absl::Status Assign(Value& value, std::string_view shown, std::string_view text);

  std::map<std::string, Value, std::less<>> values_;
};

// "-w, --write_out=simple|json|table", as help shows it.
std::string FlagUsage(const Flag& flag);

// "KVCLI_WRITE_OUT".
std::string EnvironmentName(const Flag& flag);

// The words of a kChoice flag; "version:N" as "version:N".
std::vector<std::string_view> ChoicesOf(const Flag& flag);

// The same as far as it can be typed for somebody: "version:".
std::vector<std::string_view> CompletionsOf(const Flag& flag);

}  // namespace kvd::cli
