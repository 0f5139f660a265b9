#include "client/cli/redaction.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/command.h"
#include "client/cli/flags.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

bool IsSecretFlag(std::string_view name) {
  static constexpr std::string_view kParts[] = {"key", "secret", "token", "password", "credential"};
  return std::any_of(std::begin(kParts), std::end(kParts), [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

// Those that say where and how kvcli connects and prints. All others may name something private.
constexpr std::string_view kShownFlags[] = {
    "server", "device", "connect", "gid_index", "deadline", "write_out", "hex",
};

}  // namespace

std::string RedactedCommandLine(std::string_view nul_separated) {
  std::string shown;
  bool redact_next = false;
  while (!nul_separated.empty()) {
    const std::string_view argument = nul_separated.substr(0, nul_separated.find('\0'));
    nul_separated.remove_prefix(std::min(nul_separated.size(), argument.size() + 1));
    const size_t equals = argument.find('=');
    const bool is_flag = argument.starts_with('-');
    if (redact_next && !is_flag) {
      shown += "(not shown)\n";
      redact_next = false;
      continue;
    }
    redact_next = false;
    if (is_flag && IsSecretFlag(argument.substr(0, equals))) {
      absl::StrAppend(&shown, OneLine(argument.substr(0, equals)),
                      equals == std::string_view::npos ? "\n" : "=(not shown)\n");
      redact_next = equals == std::string_view::npos;
      continue;
    }
    absl::StrAppend(&shown, OneLine(argument), "\n");
  }
  return shown;
}

std::string RedactedEnvironment(const std::function<const char*(const char*)>& environment) {
  std::set<std::string> seen;
  std::string shown;
  const auto show = [&](const Flag& flag) {
    const std::string name = EnvironmentName(flag);
    const char* const value = environment(name.c_str());
    if (value == nullptr || !seen.insert(name).second) return;
    const bool in_full = std::find(std::begin(kShownFlags), std::end(kShownFlags), flag.name) !=
                         std::end(kShownFlags);
    absl::StrAppend(&shown, name, in_full ? absl::StrCat("=", OneLine(value)) : " is set", "\n");
  };
  for (const Flag& flag : GlobalFlags()) show(flag);
  for (const Command* command : AllCommands()) {
    for (const Flag& flag : command->flags) show(flag);
  }
  return shown;
}

std::string WithoutWords(std::string_view text, std::vector<std::string> words) {
  const auto is_of_word = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  // The longest first, as one may be part of another.
  std::sort(words.begin(), words.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  std::string shown(text);
  for (const std::string& word : words) {
    for (size_t at = 0; !word.empty() && (at = shown.find(word, at)) != std::string::npos;) {
      const size_t end = at + word.size();
      const bool alone = (at == 0 || !is_of_word(shown[at - 1])) &&
                         (end == shown.size() || !is_of_word(shown[end]));
      if (alone) shown.replace(at, word.size(), "(not shown)");
      at = alone ? at + 1 : end;
    }
  }
  return shown;
}

std::string MountOf(std::string_view mountinfo, std::string_view path) {
  std::string best;
  size_t longest = 0;
  for (const absl::string_view line : absl::StrSplit(ToAbsl(mountinfo), '\n')) {
    // ID PARENT MAJOR:MINOR ROOT MOUNTPOINT ...
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    if (fields.size() < 5) continue;
    const std::string& point = fields[4];
    const bool holds = point == "/" || path == point || path.starts_with(point + "/");
    // Of two mounts on one point the later one covers the earlier.
    if (!holds || point.size() < longest) continue;
    longest = point.size();
    best = std::string(line);
  }
  return best;
}

}  // namespace kvd::cli
