#include "client/cli/prefix_flag.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"

namespace kvd::cli {

std::string_view LiteralPart(std::string_view pattern) {
  return pattern.substr(0, pattern.find_first_of("*?["));
}

std::string_view PrefixMeant(std::span<const std::string> arguments) {
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (absl::EqualsIgnoreCase(arguments[i], "match")) return LiteralPart(arguments[i + 1]);
  }
  return arguments.empty() ? std::string_view() : LiteralPart(arguments.front());
}

void NoteOfPattern(Invocation& run) {
  const std::string_view prefix = run.flags().Text("prefix");
  const std::string_view literal = LiteralPart(prefix);
  if (literal.size() == prefix.size() || run.hex()) return;
  const std::string instead =
      literal.empty() ? "leave --prefix out for all keys"
                      : absl::StrCat("did you mean --prefix=", ToAbsl(Quoted(literal)), "?");
  run.Note("", absl::StrCat("no key begins with ", ToAbsl(Quoted(prefix)),
                            ", which is taken as it is; ", instead));
}

}  // namespace kvd::cli
