#include "client/bench/kvbench/help.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/bench/kvbench/options.h"
#include "client/cli/flags.h"
#include "client/cli/flags_help.h"
#include "common/base/build_info.h"
#include "common/base/string_view.h"

namespace kvd::bench {
namespace {

constexpr std::string_view kUnits =
    "Columns are perftest's: times in microseconds, t_typical is the median, MB are 2^20 bytes of\n"
    "values. Each kind of operation has a row: get, put, insert and rmw (read-modify-write).\n"
    "\n"
    "Exit status:\n"
    "  0 done\n"
    "  2 usage\n"
    "  3 cannot connect\n"
    "  4 deadline\n"
    "  5 refused by the server: full, too large, not admitted\n"
    "  6 corrupt data: a GET returned what its key never had\n"
    "  7 a file could not be read or written, or a client process died\n"
    "  130 interrupted\n"
    "  141 nobody read the output\n";

bool IsWords(const cli::Flag& flag) { return flag.kind == cli::FlagKind::kChoice; }

// Case branches "--NAME) choices='...' ;;".
std::string ChoiceBranches() {
  std::string text;
  for (const cli::Flag& flag : BenchFlags()) {
    if (!IsWords(flag)) continue;
    absl::StrAppend(&text, "    --", ToAbsl(flag.name), ") choices='");
    for (const std::string_view word : cli::CompletionsOf(flag))
      absl::StrAppend(&text, ToAbsl(word), " ");
    text.back() = '\'';
    absl::StrAppend(&text, " ;;\n");
  }
  return text;
}

std::string FlagWords() {
  std::string text;
  for (const cli::Flag& flag : BenchFlags()) {
    absl::StrAppend(&text, text.empty() ? "" : " ", "--", ToAbsl(flag.name),
                    flag.kind == cli::FlagKind::kSwitch ? "" : "=");
  }
  return text;
}

std::string BashCompletion(absl::string_view program) {
  return absl::StrCat(
      "# ", program, "'s completion for bash. Once: source <(", program, " --completion=bash)\n",
      "_", program,
      "() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\" flag='' choices=''\n"
      "  COMPREPLY=()\n"
      "  # Bash splits at the '=' of --flag=value.\n"
      "  if [[ \"$word\" == '=' ]]; then\n"
      "    flag=\"${COMP_WORDS[COMP_CWORD-1]}\"; word=''\n"
      "  elif [[ $COMP_CWORD -ge 2 && \"${COMP_WORDS[COMP_CWORD-1]}\" == '=' ]]; then\n"
      "    flag=\"${COMP_WORDS[COMP_CWORD-2]}\"\n"
      "  fi\n"
      "  case \"$flag\" in\n",
      ChoiceBranches(), "    '') COMPREPLY=($(compgen -W '", FlagWords(),
      "' -- \"$word\"))\n"
      "      [[ \"${COMPREPLY[0]}\" == *= ]] && compopt -o nospace 2> /dev/null\n"
      "      return ;;\n"
      "    *) compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -f -- \"$word\")); return "
      ";;\n"
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$choices\" -- \"$word\"))\n"
      "}\n"
      "complete -F _",
      program, " ", program, "\n");
}

std::string ZshCompletion(absl::string_view program) {
  return absl::StrCat(
      "#compdef ", program, "\n# ", program, "'s completion for zsh. Once: source <(", program,
      " --completion=zsh)\n", "_", program,
      "() {\n"
      "  local word=\"${words[CURRENT]}\" choices=''\n"
      "  if [[ \"$word\" != --*=* ]]; then\n"
      "    compadd -S '' -- ",
      FlagWords(),
      "\n    return\n"
      "  fi\n"
      "  compset -P '*='\n"
      "  case \"${word%%=*}\" in\n",
      ChoiceBranches(),
      "    *) _files; return ;;\n"
      "  esac\n"
      "  compadd -- ${=choices}\n"
      "}\n"
      "if [[ \"$funcstack[1]\" == '_",
      program, "' ]]; then _", program, "; else compdef _", program, " ", program, "; fi\n");
}

}  // namespace

std::string HelpText(std::string_view program, std::string_view summary) {
  std::string text = absl::StrCat(ToAbsl(program), ": ", ToAbsl(summary), "\n\nUsage:\n  ",
                                  ToAbsl(program), " [FLAGS]\n\nFlags:\n");
  cli::AppendFlags(BenchFlags(), text);
  absl::StrAppend(&text, "\n", ToAbsl(kUnits));
  return text;
}

std::string VersionText(std::string_view program) {
  const std::string commit(Commit());
  return absl::StrCat(ToAbsl(program), " ", ToAbsl(Version()),
                      commit == "unknown" ? "" : absl::StrCat(" (commit ", commit, ")"), "\n");
}

std::string CompletionText(std::string_view program, std::string_view shell) {
  return shell == "zsh" ? ZshCompletion(ToAbsl(program)) : BashCompletion(ToAbsl(program));
}

}  // namespace kvd::bench
