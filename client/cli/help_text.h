// Help and completion, all of it made from the table of commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/cli/command.h"

namespace kvd::cli {

// Who reads it: somebody at a shell, or somebody who types commands to kvcli itself.
enum class HelpFor { kShell, kPrompt };

std::string OverviewHelp(HelpFor whom = HelpFor::kShell);
std::string CommandHelp(const Command& command, HelpFor whom = HelpFor::kShell);
std::string VersionText();

// Scripts that make a shell complete kvcli's commands and flags.
std::string BashCompletion();
std::string ZshCompletion();

// What the last word of `line` may become at the prompt: commands in the first place and after
// help, then flags. Sorted. Empty if nothing fits.
std::vector<std::string> CompleteLastWord(std::string_view line);

}  // namespace kvd::cli
