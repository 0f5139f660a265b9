#include "client/cli/help_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/cli/flags.h"
#include "client/cli/flags_help.h"
#include "common/base/build_info.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

std::string Padded(std::string_view text, size_t width) {
  std::string padded(text);
  padded.append(width > padded.size() ? width - padded.size() : 0, ' ');
  return padded;
}

// Every line of `text`, two columns in.
void AppendIndented(std::string_view text, std::string& out) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    absl::StrAppend(&out, "  ", ToAbsl(text.substr(0, end)), "\n");
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

constexpr std::string_view kExitStatus =
    "Exit status:\n"
    "  0 done\n"
    "  1 not found or condition failed: of --if, or of cas\n"
    "  2 usage: arguments, or input that is not understood\n"
    "  3 cannot connect: no server there, or it went away\n"
    "  4 deadline: not done in time\n"
    "  5 refused by the server: full, too large, no number, not admitted (nor by its socket)\n"
    "  6 corrupt data: the server or its memory broke the format\n"
    "  7 a file could not be read or written, or the output\n"
    "  130 interrupted\n"
    "  141 nobody read the output\n";

constexpr size_t kSummaryColumn = 35;  // behind the longest of the commands' usages

void AppendCommands(std::string& out) {
  for (const Command* command : AllCommands()) {
    const std::string usage =
        absl::StrCat("  ", ToAbsl(command->name), " ", ToAbsl(command->arguments));
    absl::StrAppend(&out, Padded(usage, kSummaryColumn), ToAbsl(command->summary), "\n");
  }
}

std::string PromptHelp() {
  std::string out = "Commands, one a line:\n";
  AppendCommands(out);
  absl::StrAppend(&out, Padded("  exit, quit, Ctrl-D", kSummaryColumn), "leave kvcli\n\n");
  out += "Flags, after any command; for that command alone:\n";
  for (const Flag& flag : GlobalFlags()) {
    if (flag.name != "history" && flag.name != "version") AppendFlags({&flag, 1}, out);
  }
  out +=
      "\nWords are quoted as in a shell: 'as it is', \"with \\n \\t \\xNN\". # begins a comment.\n"
      "'help COMMAND' tells more.\n";
  return out;
}

}  // namespace

std::string OverviewHelp(HelpFor whom) {
  if (whom == HelpFor::kPrompt) return PromptHelp();
  std::string out =
      "kvcli: reads and writes the items of a kvd.\n\n"
      "Usage:\n"
      "  kvcli [FLAGS] COMMAND [ARGUMENTS] [FLAGS]\n"
      "  kvcli [FLAGS]               on a terminal: a prompt\n"
      "  kvcli [FLAGS] < COMMANDS    a command a line, quoted as at the prompt; goes on after one\n"
      "                              that fails, is refused or finds no server, and exits with\n"
      "                              the first failure's status; exit or quit ends it\n\n"
      "Commands:\n";
  AppendCommands(out);
  out += "\nFlags, also as environment variables KVCLI_SERVER, KVCLI_DEADLINE and so on:\n";
  AppendFlags(GlobalFlags(), out);
  absl::StrAppend(
      &out,
      "\n-- ends flags. Dashes in a flag's name are as good as underscores. Behind a command a\n"
      "flag has one value; one before it gives way to it, as an alias's should.\n'kvcli "
      "help COMMAND' tells more.\n\n",
      ToAbsl(kExitStatus));
  return out;
}

std::string CommandHelp(const Command& command, HelpFor whom) {
  const bool shell = whom == HelpFor::kShell;
  const char* program = shell ? "kvcli " : "";
  std::string out = absl::StrCat(program, ToAbsl(command.name), ": ", ToAbsl(command.summary),
                                 ".\n\nUsage:\n  ", program, ToAbsl(command.name));
  if (!command.arguments.empty()) absl::StrAppend(&out, " ", ToAbsl(command.arguments));
  out += " [FLAGS]\n";
  if (!command.details.empty()) absl::StrAppend(&out, "\n", ToAbsl(command.details));
  if (!command.flags.empty()) {
    out += "\nFlags:\n";
    AppendFlags(command.flags, out);
  }
  out += shell ? "\nExamples:\n" : "\nExamples, as given to a shell:\n";
  AppendIndented(command.examples, out);
  out += shell ? "\n'kvcli help' lists the flags that every command takes.\n"
               : "\n'help' lists the flags that every command takes.\n";
  return out;
}

std::string VersionText() {
  const std::string commit(Commit());
  return absl::StrCat("kvcli ", ToAbsl(Version()),
                      commit == "unknown" ? "" : absl::StrCat(" (commit ", commit, ")"), "\n");
}

std::vector<std::string> CompleteLastWord(std::string_view line) {
  const size_t start = line.find_last_of(" \t") + 1;  // npos + 1 is 0
  const std::string_view word = line.substr(start);
  std::string_view before = line.substr(0, start);
  before.remove_prefix(std::min(before.find_first_not_of(" \t"), before.size()));
  const std::string_view first = before.substr(0, before.find_first_of(" \t"));

  std::vector<std::string> found;
  const auto offer = [&](std::string candidate) {
    if (candidate.starts_with(word)) found.push_back(std::move(candidate));
  };
  if (first.empty() || first == "help") {
    for (const Command* command : AllCommands()) offer(std::string(command->name));
  } else if (const Command* command = FindCommand(first); command != nullptr && !word.empty()) {
    const auto offer_flags = [&](std::span<const Flag> flags) {
      for (const Flag& flag : flags) {
        const std::string name = absl::StrCat("--", ToAbsl(flag.name));
        if (word.find('=') == std::string_view::npos) {
          offer(flag.kind == FlagKind::kSwitch ? name : name + "=");
        }
        for (const std::string_view choice : CompletionsOf(flag)) {
          if (word.starts_with(name + "=")) offer(absl::StrCat(name, "=", ToAbsl(choice)));
        }
      }
    };
    offer_flags(command->flags);
    offer_flags(GlobalFlags());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace kvd::cli
