#include "client/cli/flags_help.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

constexpr size_t kHelpColumn = 30;
constexpr size_t kHelpWidth = 80;

// `text` from kHelpColumn on, where `used` columns of the line are taken already.
void AppendWrapped(std::string_view text, size_t used, std::string& out) {
  const size_t room = kHelpWidth - kHelpColumn;
  while (!text.empty()) {
    if (used > kHelpColumn) {
      while (out.ends_with(' ')) out.pop_back();
      out += '\n';
      used = 0;
    }
    size_t end = text.size() <= room ? text.size() : text.rfind(' ', room);
    if (end == std::string_view::npos) end = text.size();
    out.append(kHelpColumn - used, ' ');
    absl::StrAppend(&out, ToAbsl(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    used = kHelpColumn + 1;
  }
  out += '\n';
}

}  // namespace

void AppendFlags(std::span<const Flag> flags, std::string& out) {
  for (const Flag& flag : flags) {
    const std::string usage = absl::StrCat("  ", FlagUsage(flag), "  ");
    std::string help(flag.help);
    if (flag.kind != FlagKind::kSwitch && !flag.default_value.empty()) {
      absl::StrAppend(&help, " (default ", ToAbsl(flag.default_value), ")");
    }
    out += usage;
    AppendWrapped(help, usage.size(), out);
  }
}

}  // namespace kvd::cli
