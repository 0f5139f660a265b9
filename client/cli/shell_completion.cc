#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/flags.h"
#include "client/cli/help_text.h"
#include "common/base/string_view.h"

namespace kvd::cli {
namespace {

// "--server= --hex ..."
std::string FlagWords(std::span<const Flag> flags) {
  std::string words;
  for (const Flag& flag : flags) {
    absl::StrAppend(&words, words.empty() ? "" : " ", "--", ToAbsl(flag.name),
                    flag.kind == FlagKind::kSwitch ? "" : "=");
  }
  return words;
}

std::string ChoiceWords(const Flag& flag) {
  std::string words;
  for (const std::string_view word : CompletionsOf(flag)) {
    absl::StrAppend(&words, words.empty() ? "" : " ", ToAbsl(word));
  }
  return words;
}

std::string CommandWords() {
  std::string words;
  for (const Command* command : AllCommands()) {
    absl::StrAppend(&words, words.empty() ? "" : " ", ToAbsl(command->name));
  }
  return words;
}

bool TakesFile(const Command& command) {
  return command.arguments.find("FILE") != std::string_view::npos;
}

// Case branches "NAME) flags='...' ;;" of every command that has flags of its own.
std::string FlagBranches() {
  std::string out;
  for (const Command* command : AllCommands()) {
    if (command->flags.empty()) continue;
    absl::StrAppend(&out, "    ", ToAbsl(command->name), ") flags=\"$flags ",
                    FlagWords(command->flags), "\" ;;\n");
  }
  return out;
}

// Case branches for the values of --write_out and its kind.
std::string ChoiceBranches() {
  std::string out;
  const auto add = [&out](const std::string& pattern, const Flag& flag) {
    if (flag.kind != FlagKind::kChoice) return;
    absl::StrAppend(&out, "    ", pattern, ") choices=\"", ChoiceWords(flag), "\" ;;\n");
  };
  for (const Flag& flag : GlobalFlags()) add(absl::StrCat("*:--", ToAbsl(flag.name)), flag);
  for (const Command* command : AllCommands()) {
    for (const Flag& flag : command->flags) {
      add(absl::StrCat(ToAbsl(command->name), ":--", ToAbsl(flag.name)), flag);
    }
  }
  return out;
}

// "NAME:SUMMARY" within single quotes, as zsh's _describe takes it.
std::string Described(const Command& command) {
  std::string text;
  for (const char c : command.summary) {
    if (c == '\'') {
      text += "'\\''";
    } else if (c == ':') {
      text += "\\:";
    } else {
      text += c;
    }
  }
  return absl::StrCat("    '", ToAbsl(command.name), ":", text, "'\n");
}

std::string FileCommands() {
  std::string pattern;
  for (const Command* command : AllCommands()) {
    if (!TakesFile(*command)) continue;
    absl::StrAppend(&pattern, pattern.empty() ? "" : "|", ToAbsl(command->name));
  }
  return pattern;
}

}  // namespace

std::string BashCompletion() {
  return absl::StrCat(
      "# kvcli's completion for bash. Once: source <(kvcli completion bash)\n"
      "# Always: kvcli completion bash > ~/.local/share/bash-completion/completions/kvcli\n"
      "_kvcli() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" command='' flag='' choices='' i\n"
      "  local commands='",
      CommandWords(),
      "'\n"
      "  local flags='",
      FlagWords(GlobalFlags()),
      "'\n"
      "  COMPREPLY=()\n"
      "  # Bash splits at the '=' of --flag=value.\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"${COMP_WORDS[i]}\" in\n"
      "      =) ((i++)) ;;\n"
      "      -w) ((i++)) ;;\n"
      "      -*) ;;\n"
      "      *) command=\"${COMP_WORDS[i]}\"; break ;;\n"
      "    esac\n"
      "  done\n"
      "  if [[ \"$word\" == '=' ]]; then\n"
      "    flag=\"${COMP_WORDS[COMP_CWORD-1]}\"; word=''\n"
      "  elif [[ $COMP_CWORD -ge 2 && \"${COMP_WORDS[COMP_CWORD-1]}\" == '=' ]]; then\n"
      "    flag=\"${COMP_WORDS[COMP_CWORD-2]}\"\n"
      "  elif [[ $COMP_CWORD -ge 1 && \"${COMP_WORDS[COMP_CWORD-1]}\" == '-w' ]]; then\n"
      "    flag='--write_out'\n"
      "  fi\n"
      "  if [[ -n \"$flag\" ]]; then\n"
      "    case \"$command:$flag\" in\n",
      ChoiceBranches(),
      "    *:--server|*:--history) local IFS=$'\\n'; compopt -o filenames 2> /dev/null\n"
      "      COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
      "    esac\n"
      "    COMPREPLY=($(compgen -W \"$choices\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case \"$command\" in\n",
      FlagBranches(),
      "  esac\n"
      "  if [[ \"$word\" == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
      "    [[ \"${COMPREPLY[0]}\" == *= ]] && compopt -o nospace 2> /dev/null\n"
      "    return\n"
      "  fi\n"
      "  case \"$command\" in\n"
      "    ''|help) COMPREPLY=($(compgen -W \"$commands\" -- \"$word\")) ;;\n"
      "    completion) COMPREPLY=($(compgen -W 'bash zsh' -- \"$word\")) ;;\n"
      "    ",
      FileCommands(),
      ")\n"
      "      local IFS=$'\\n'; compopt -o filenames 2> /dev/null\n"
      "      if [[ \"$word\" == @* ]]; then\n"
      "        COMPREPLY=($(compgen -P @ -f -- \"${word#@}\"))\n"
      "      else\n"
      "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "      fi ;;\n"
      "  esac\n"
      "}\n"
      "complete -F _kvcli kvcli\n");
}

std::string ZshCompletion() {
  std::string described;
  for (const Command* command : AllCommands()) described += Described(*command);
  return absl::StrCat(
      "#compdef kvcli\n"
      "# kvcli's completion for zsh. Once: source <(kvcli completion zsh)\n"
      "# Always: kvcli completion zsh > a directory of $fpath, as the file _kvcli\n"
      "_kvcli() {\n"
      "  local command='' flags='",
      FlagWords(GlobalFlags()),
      "' choices='' word i\n"
      "  local -a commands\n"
      "  commands=(\n",
      described,
      "  )\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    case \"${words[i]}\" in\n"
      "      -w) ((i++)) ;;\n"
      "      -*) ;;\n"
      "      *) command=\"${words[i]}\"; break ;;\n"
      "    esac\n"
      "  done\n"
      "  word=\"${words[CURRENT]}\"\n"
      "  [[ \"${words[CURRENT-1]}\" == '-w' ]] && word='--write_out='\n"
      "  if [[ \"$word\" == --*=* ]]; then\n"
      "    case \"$command:${word%%=*}\" in\n",
      ChoiceBranches(),
      "    *:--server|*:--history) compset -P '*='; _files; return ;;\n"
      "    esac\n"
      "    compset -P '*='\n"
      "    compadd -- ${=choices}\n"
      "    return\n"
      "  fi\n"
      "  case \"$command\" in\n",
      FlagBranches(),
      "  esac\n"
      "  if [[ \"$word\" == -* ]]; then\n"
      "    compadd -S '' -- ${=flags}\n"
      "    return\n"
      "  fi\n"
      "  case \"$command\" in\n"
      "    ''|help) _describe command commands ;;\n"
      "    completion) compadd bash zsh ;;\n"
      "    ",
      FileCommands(),
      ") compset -P '@'; _files ;;\n"
      "  esac\n"
      "}\n"
      "if [[ \"$funcstack[1]\" == '_kvcli' ]]; then _kvcli \"$@\"; else compdef _kvcli kvcli; "
      "fi\n");
}

}  // namespace kvd::cli
