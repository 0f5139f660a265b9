#include "client/cli/prefix_flag.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "client/cli/foreign_words.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"

namespace kvd::cli {

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
