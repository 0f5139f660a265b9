#include "client/cli/foreign_words.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

// An option of redis, with what stands before and behind its argument here.
struct Option {
  std::string_view word;
  std::string_view flag;  // of a command that this is for
  std::string_view text;
  bool has_argument;
  std::string_view unit = {};
};

constexpr Option kOptions[] = {
    {"EX", "ttl", "--ttl=", true},
    {"PX", "ttl", "--ttl=", true, "ms"},
    {"EXAT", "expire_at", "--expire_at=", true},
    {"NX", "if", "--if=absent", false},
    {"XX", "if", "--if=present", false},
    {"MATCH", "prefix", "--prefix=", true},
};

bool Has(const Command& command, std::string_view flag) {
  return std::any_of(command.flags.begin(), command.flags.end(),
                     [flag](const Flag& each) { return each.name == flag; });
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string_view LiteralPart(std::string_view pattern) {
  return pattern.substr(0, pattern.find_first_of("*?["));
}

std::string FlagMeant(const Command& command, std::span<const std::string> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    for (const Option& option : kOptions) {
      if (!Has(command, option.flag) || !absl::EqualsIgnoreCase(arguments[i], ToAbsl(option.word)))
        continue;
      if (!option.has_argument) return std::string(option.text);
      if (i + 1 == arguments.size()) continue;
      const std::string_view argument = LiteralPart(arguments[i + 1]);
      if (argument.empty()) return "";
      return absl::StrCat(ToAbsl(option.text), Quoted(argument), ToAbsl(option.unit));
    }
  }
  if (command.name == "touch" && arguments.size() == 2 && IsNumber(arguments[1])) {
    return absl::StrCat("--ttl=", arguments[1]);
  }
  if (command.arguments_max > 0 || arguments.empty() || !Has(command, "prefix")) return "";
  const std::string_view prefix = LiteralPart(arguments.front());
  return prefix.empty() ? "" : absl::StrCat("--prefix=", Quoted(prefix));
}

}  // namespace kvd::cli
