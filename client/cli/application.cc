#include "client/cli/application.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/command_line.h"
#include "client/cli/failure.h"
#include "client/cli/foreign_words.h"
#include "client/cli/help_text.h"
#include "client/cli/interrupt.h"
#include "client/cli/invocation.h"
#include "client/cli/line_reader.h"
#include "client/cli/text.h"
#include "common/base/build_info.h"
#include "common/base/errno_status.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

constexpr std::string_view kProgram = "kvcli: ";

std::string UnknownCommand(std::string_view name) {
  if (name.find_first_of(":/") != std::string_view::npos) {  // as other programs take it
    return absl::StrCat("unknown command; if that is a server, give --server=", Quoted(name));
  }
  const std::string_view near = NearestCommand(name);
  return near.empty() ? "unknown command; 'kvcli help' lists them"
                      : absl::StrCat("unknown command; did you mean ", ToAbsl(near), "?");
}

// What is wrong with the number of arguments, or nothing.
std::optional<std::string> WrongCount(const Command& command,
                                      const std::vector<std::string>& arguments) {
  std::string usage = absl::StrCat("; usage: kvcli ", ToAbsl(command.name));
  if (!command.arguments.empty()) absl::StrAppend(&usage, " ", ToAbsl(command.arguments));
  if (arguments.size() < command.arguments_min) {
    // The first that is not there: KEY VERSION VALUE, KEY...
    std::string_view wanted = command.arguments;
    for (size_t given = arguments.size(); given > 0 && wanted.find(' ') != wanted.npos; --given) {
      wanted.remove_prefix(wanted.find(' ') + 1);
    }
    wanted = wanted.substr(0, wanted.find_first_of(" ."));
    return absl::StrCat(ToAbsl(wanted), " is missing", usage);
  }
  if (arguments.size() > command.arguments_max) {
    if (const std::string meant = FlagMeant(command, arguments); !meant.empty()) {
      usage = absl::StrCat("; did you mean ", meant, "?");
    }
    return absl::StrCat("one argument too many: ", Quoted(arguments[command.arguments_max]), usage);
  }
  return std::nullopt;
}

// `wrong`, about a flag of the command. Where that may have been meant as a word, says how to write
// such a one.
std::string WithWayToWriteWords(const Command& command, std::string_view wrong) {
  std::string text(wrong);
  if (text.find("; ") != std::string::npos) return text;
  if (command.arguments.find("KEY") != std::string_view::npos) {
    text += "; if it is a key or a value, put -- before it";
  } else if (command.arguments.find("FILE") != std::string_view::npos) {
    text += "; if it is the name of a file, put -- before it";
  }
  return text;
}

// Whoever copies a line from a shell brings the program's name along.
std::span<const std::string> WithoutProgram(std::span<const std::string> words) {
  return !words.empty() && words.front() == "kvcli" ? words.subspan(1) : words;
}

bool EndsLines(std::span<const std::string> words) {
  const std::span<const std::string> command = WithoutProgram(words);
  return command.size() == 1 && (command.front() == "quit" || command.front() == "exit");
}

// What redis-cli takes as a flag, and what it is here.
struct Mode {
  std::string_view flag;
  std::string_view command;
  std::string_view flag_of_command;  // may be empty
};
constexpr Mode kModes[] = {
    {"--bigkeys", "bigkeys", ""},
    {"--stat", "stat", "--rates"},
    {"--latency", "latency", ""},
    {"--latency-history", "latency", "--lines"},
    {"--latency_history", "latency", "--lines"},
};

// Whether `words` are flags alone, by what `values` has declared.
bool AreFlags(std::span<const std::string> words, FlagValues values) {
  if (!words.empty() && words.back() == "--") return false;
  const auto rest = values.TakeArguments(words, {.leading_only = true});
  return rest.ok() && rest->empty();
}

// "--bigkeys" behind nothing but flags, as redis-cli has it, is the command of that name. Flags of
// that command may stand before it too, as in redis-cli -i 1 --stat.
std::vector<std::string> WithModesAsCommands(std::span<const std::string> arguments,
                                             const FlagValues& values) {
  std::vector<std::string> words(arguments.begin(), arguments.end());
  for (size_t at = 0; at < words.size(); ++at) {
    const auto mode = std::find_if(std::begin(kModes), std::end(kModes),
                                   [&](const Mode& each) { return each.flag == words[at]; });
    if (mode == std::end(kModes)) continue;
    std::vector<std::string> command = {std::string(mode->command)};
    if (!mode->flag_of_command.empty()) command.emplace_back(mode->flag_of_command);
    const std::span<const std::string> before(words.data(), at);
    FlagValues of_command = values;
    of_command.Declare(FindCommand(mode->command)->flags);
    if (!AreFlags(before, of_command)) return words;
    // Those that only the command takes have to stand behind it.
    const size_t place = AreFlags(before, values) ? at : 0;
    words.erase(words.begin() + static_cast<ptrdiff_t>(at));
    words.insert(words.begin() + static_cast<ptrdiff_t>(place), command.begin(), command.end());
    return words;
  }
  return words;
}

}  // namespace

ExitCode Application::Fail(std::string_view program, std::string_view asked, std::string_view wrong,
                           const Command* command) {
  const Failure failure = UsageFailure(wrong, command == nullptr ? "" : command->name);
  console_.out.Flush();
  console_.err.Write(FailureLine(program, asked, failure));
  console_.err.Flush();
  return failure.code;
}

ExitCode Application::Finish(ExitCode exit, std::string_view program, std::string_view asked) {
  console_.out.Flush();
  if (console_.out.ok()) return exit;
  if (console_.out.error_number() == EPIPE) return ExitCode::kBrokenPipe;
  const Failure failure =
      LocalIoFailure(ErrnoStatus(console_.out.error_number(), "cannot write standard output"));
  console_.err.Write(FailureLine(program, asked, failure));
  console_.err.Flush();
  return failure.code;
}

ExitCode Application::Run(std::span<const std::string> arguments) {
  FlagValues values;
  values.Declare(GlobalFlags());
  if (const absl::Status status = values.TakeEnvironment(console_.environment); !status.ok()) {
    return Fail(kProgram, "environment", ToStd(status.message()));
  }
  const auto words =
      values.TakeArguments(WithModesAsCommands(arguments, values), {.leading_only = true});
  if (!words.ok()) return Fail(kProgram, "flags", ToStd(words.status().message()));
  if (!words->empty()) return Execute(*words, std::move(values), kProgram);
  if (values.Switch("help") || values.Switch("version")) {
    return Execute(std::vector<std::string>{"help"}, values, kProgram);
  }
  if (console_.in_is_terminal && console_.out_is_terminal) return Prompt(values);
  return RunLines(values);
}

ExitCode Application::Execute(std::span<const std::string> words, FlagValues values,
                              std::string_view program) {
  const Command* command = FindCommand(words.front());
  if (command == nullptr)
    return Fail(program, Quoted(words.front()), UnknownCommand(words.front()));
  values.Declare(command->flags);
  if (const absl::Status status = values.TakeEnvironment(console_.environment); !status.ok()) {
    return Fail(program, command->name, ToStd(status.message()));
  }
  // Those in front of the command may well be an alias's, for a later one to take the place of.
  const auto arguments = values.TakeArguments(words.subspan(1), {.once = true});
  if (!arguments.ok()) {
    const std::string_view wrong = ToStd(arguments.status().message());
    return Fail(program, command->name, WithWayToWriteWords(*command, wrong), command);
  }
  if (values.Switch("version")) {
    console_.out.Write(VersionText());
    return Finish(ExitCode::kDone, program, command->name);
  }
  if (values.Switch("help")) {
    const HelpFor whom = console_.in_is_commands ? HelpFor::kPrompt : HelpFor::kShell;
    console_.out.Write(command->name == "help" ? OverviewHelp(whom) : CommandHelp(*command, whom));
    return Finish(ExitCode::kDone, program, command->name);
  }
  if (const auto wrong = WrongCount(*command, *arguments); wrong.has_value()) {
    return Fail(program, command->name, *wrong, command);
  }
  Invocation invocation(*command, *arguments, values, console_, session_, program);
  const ExitCode exit = command->run(invocation);
  session_.EndAdministration();
  return Finish(exit, program, command->name);
}

ExitCode Application::ExecuteLine(std::span<const std::string> words, FlagValues values,
                                  std::string_view program) {
  const auto rest = values.TakeArguments(WithoutProgram(words), {.leading_only = true});
  if (!rest.ok()) return Fail(program, "flags", ToStd(rest.status().message()));
  if (!rest->empty()) return Execute(*rest, std::move(values), program);
  if (!values.Switch("help") && !values.Switch("version")) return ExitCode::kDone;
  return Execute(std::vector<std::string>{"help"}, std::move(values), program);
}

ExitCode Application::RunLines(const FlagValues& values) {
  console_.in_is_commands = true;
  LineReader lines(console_.in, kGiB);
  ExitCode first_failure = ExitCode::kDone;
  while (true) {
    const absl::StatusOr<LineReader::Outcome> outcome = lines.Next();
    const std::string program = absl::StrCat(ToAbsl(kProgram), "line ", lines.line_number(), ": ");
    ExitCode exit = ExitCode::kDone;
    if (!outcome.ok()) {
      const Failure failure = LocalIoFailure(outcome.status());
      console_.err.Write(FailureLine(kProgram, "standard input", failure));
      console_.err.Flush();
      return first_failure != ExitCode::kDone ? first_failure : failure.code;
    }
    if (*outcome == LineReader::Outcome::kEnd) return first_failure;
    if (*outcome == LineReader::Outcome::kTooLong) {
      exit = Fail(program, "", absl::StrCat("longer than ", FormatBytes(kGiB)));
    } else if (const auto words = SplitCommandLine(lines.line()); !words.ok()) {
      exit = Fail(program, "", ToStd(words.status().message()));
    } else if (EndsLines(*words)) {
      return first_failure;
    } else if (!words->empty()) {
      exit = ExecuteLine(*words, values, program);
    }
    if (first_failure == ExitCode::kDone) first_failure = exit;
    if (exit == ExitCode::kInterrupted || !console_.out.ok()) return first_failure;
  }
}

std::string Application::HistoryPath(const FlagValues& values) const {
  const std::string& path = values.Text("history");
  if (!path.starts_with("~/")) return path;
  const char* home = console_.environment("HOME");
  return home == nullptr || *home == '\0' ? "" : absl::StrCat(home, path.substr(1));
}

ExitCode Application::Prompt(const FlagValues& values) {
  console_.in_is_commands = true;
  const std::unique_ptr<LineEditor> editor = make_editor_(HistoryPath(values));
  console_.out.Write(absl::StrCat("kvcli ", ToAbsl(Version()),
                                  ": help lists the commands; exit, quit or Ctrl-D leaves\n"));
  console_.out.Flush();
  // Connect now, so that whoever is not connected knows before the first command.
  const auto store = session_.Store(values.Text("server"), ConnectOptionsOf(values));
  if (!store.ok()) {
    console_.err.Write(
        FailureLine(kProgram, "prompt", ConnectFailure(values.Text("server"), store.status())));
    console_.err.Flush();
  }
  std::string line;
  while (true) {
    // A Ctrl-C is for the line or the command, not for the prompt.
    const InterruptGuard guard(InterruptGuard::Signals::kInterrupt);
    // Of the server that the next line goes to, wherever the last one went.
    std::string name = session_.NameOf(values.Text("server"));
    if (name.empty()) name = "(not connected)";
    const LineEditor::Outcome outcome =
        editor->ReadLine(absl::StrCat("kvd ", OneLine(name), "> "), line);
    if (outcome == LineEditor::Outcome::kCancelled) continue;
    if (outcome == LineEditor::Outcome::kEnd) return ExitCode::kDone;
    const auto words = SplitCommandLine(line);
    if (words.ok() && words->empty()) continue;
    // As shells do: a line that begins with a blank is not kept.
    if (!line.starts_with(' ')) editor->Remember(line);
    if (!words.ok()) {
      Fail("", "", ToStd(words.status().message()));
      continue;
    }
    if (EndsLines(*words)) return ExitCode::kDone;
    ExecuteLine(*words, values, "");
    if (!console_.out.ok()) return Finish(ExitCode::kDone, kProgram, "prompt");
  }
}

}  // namespace kvd::cli
