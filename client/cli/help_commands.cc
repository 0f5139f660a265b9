// help, completion, version: what needs no server.
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/help_text.h"
#include "client/cli/invocation.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

HelpFor ForWhom(Invocation& run) {
  return run.console().in_is_commands ? HelpFor::kPrompt : HelpFor::kShell;
}

ExitCode RunHelp(Invocation& run) {
  if (run.arguments().empty()) {
    run.console().out.Write(OverviewHelp(ForWhom(run)));
    return ExitCode::kDone;
  }
  const std::string& name = run.arguments().front();
  const Command* command = FindCommand(name);
  if (command == nullptr) {
    const std::string_view near = NearestCommand(name);
    return run.Fail(name, UsageFailure(absl::StrCat(
                              "no such command; ",
                              near.empty() ? std::string("'kvcli help' lists them")
                                           : absl::StrCat("did you mean ", ToAbsl(near), "?"))));
  }
  run.console().out.Write(CommandHelp(*command, ForWhom(run)));
  return ExitCode::kDone;
}

ExitCode RunCompletion(Invocation& run) {
  const std::string& shell = run.arguments().front();
  if (shell == "bash") {
    run.console().out.Write(BashCompletion());
  } else if (shell == "zsh") {
    run.console().out.Write(ZshCompletion());
  } else {
    return run.Fail(shell, UsageFailure("no such shell; give bash or zsh"));
  }
  return ExitCode::kDone;
}

ExitCode RunVersion(Invocation& run) {
  run.console().out.Write(VersionText());
  return ExitCode::kDone;
}

}  // namespace

constinit const Command kHelpCommand = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "print what there is, or what a command does",
    .details = "",
    .examples =
        "kvcli help\n"
        "kvcli help put\n"
        "kvcli put --help\n",
    .flags = {},
    .arguments_min = 0,
    .arguments_max = 1,
    .run = RunHelp,
};

constinit const Command kCompletionCommand = {
    .name = "completion",
    .arguments = "bash|zsh",
    .summary = "print a script that lets a shell complete kvcli",
    .details = "",
    .examples =
        "source <(kvcli completion bash)\n"
        "kvcli completion bash > ~/.local/share/bash-completion/completions/kvcli\n"
        "kvcli completion zsh > ~/.zfunc/_kvcli\n",
    .flags = {},
    .arguments_min = 1,
    .arguments_max = 1,
    .run = RunCompletion,
};

constinit const Command kVersionCommand = {
    .name = "version",
    .arguments = "",
    .summary = "print which kvcli this is",
    .details = "",
    .examples = "kvcli version\n",
    .flags = {},
    .arguments_min = 0,
    .arguments_max = 0,
    .run = RunVersion,
};

}  // namespace kvd::cli
