#include "client/cli/help_text.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/text.h"
#include "tests/support/test.h"

namespace kvd::cli {
namespace {

using Words = std::vector<std::string>;

void CheckWidth(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(DisplayWidth(line) <= 92);
    CHECK_FALSE(line.ends_with(' '));
  }
}

TEST_CASE("HelpText: what a command does is told apart from how it is used") {
  const std::string help = OverviewHelp();
  for (const Command* command : AllCommands()) {
    const std::string usage =
        "  " + std::string(command->name) + " " + std::string(command->arguments) + " ";
    CHECK(help.find(usage) != std::string::npos);
  }
}

TEST_CASE("HelpText: names every command, every flag and every exit code") {
  const std::string help = OverviewHelp();
  for (const Command* command : AllCommands()) {
    CHECK(help.find("  " + std::string(command->name)) != std::string::npos);
    CHECK(help.find(std::string(command->summary)) != std::string::npos);
  }
  for (const Flag& flag : GlobalFlags()) {
    CHECK(help.find("--" + std::string(flag.name)) != std::string::npos);
  }
  for (const char* code :
       {"  0 ", " 1 ", " 2 ", "  3 ", " 4 ", " 5 ", "  6 ", " 7 ", "130", "141"}) {
    CHECK(help.find(code) != std::string::npos);
  }
  CheckWidth(help);
}

TEST_CASE("HelpText: a command's own help has its usage, flags and examples") {
  for (const Command* command : AllCommands()) {
    const std::string help = CommandHelp(*command);
    CHECK(help.find("Usage:\n  kvcli " + std::string(command->name)) != std::string::npos);
    CHECK(help.find("Examples:\n  ") != std::string::npos);
    for (const Flag& flag : command->flags) {
      CHECK(help.find("--" + std::string(flag.name)) != std::string::npos);
    }
    CheckWidth(help);
  }
}

TEST_CASE("HelpText: where a flag takes a size, its suffixes are named") {
  size_t sizes = 0;
  for (const Command* command : AllCommands()) {
    for (const Flag& flag : command->flags) {
      if (flag.kind != FlagKind::kBytes) continue;
      ++sizes;
      CHECK_THAT(std::string(flag.help), Catch::EndsWith("suffixes k, m, g, t"));
    }
  }
  CHECK(sizes > 0);
}

TEST_CASE("HelpText: no two flags of one command share a name or a letter") {
  for (const Command* command : AllCommands()) {
    Words names;
    for (const auto flags : {GlobalFlags(), command->flags}) {
      for (const Flag& flag : flags) {
        names.emplace_back(flag.name);
        if (flag.letter != '\0') names.emplace_back(1, flag.letter);
      }
    }
    std::sort(names.begin(), names.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
  }
}

TEST_CASE("HelpText: the prompt completes commands, help's subjects, flags and their choices") {
  CHECK(CompleteLastWord("ge") == Words{"get"});
  CHECK(CompleteLastWord("  ex") == Words{"exists"});
  CHECK(CompleteLastWord("").size() == AllCommands().size());
  CHECK(CompleteLastWord("help ver") == Words{"version"});
  CHECK(CompleteLastWord("get --h") == Words{"--help", "--hex", "--history="});
  CHECK(CompleteLastWord("get --connect=") == Words{"--connect=cm", "--connect=tcp"});
  CHECK(CompleteLastWord("get --g") == Words{"--gid_index="});
  CHECK(CompleteLastWord("put k --li") == Words{"--literal"});
  CHECK(CompleteLastWord("load x --format=j") == Words{"--format=jsonl"});
  CHECK(CompleteLastWord("get k --write_out=") ==
        Words{"--write_out=json", "--write_out=simple", "--write_out=table"});
  CHECK(CompleteLastWord("put k v --if=") == Words{"--if=absent", "--if=present", "--if=version:"});
  CHECK(CompleteLastWord("touch k --t") == Words{"--ttl="});
  CHECK(CompleteLastWord("get ").empty());
  CHECK(CompleteLastWord("get k").empty());
  CHECK(CompleteLastWord("nonsense --x").empty());
}

}  // namespace
}  // namespace kvd::cli
