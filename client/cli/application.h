// kvcli without its process: arguments and streams in, exit code out.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/command.h"
#include "client/cli/console.h"
#include "client/cli/exit_code.h"
#include "client/cli/flags.h"
#include "client/cli/line_editor.h"
#include "client/cli/session.h"
#include "client/cli/store.h"

namespace kvd::cli {

class Application {
 public:
  using EditorMaker = std::function<std::unique_ptr<LineEditor>(const std::string& history_path)>;

  // `console` must outlive this object.
  Application(Console& console, Connector connector, EditorMaker make_editor)
      : console_(console), session_(std::move(connector)), make_editor_(std::move(make_editor)) {}

  // Runs the command that `arguments` (without the program's name) give; without one, a prompt on a
  // terminal, and otherwise the commands that standard input holds.
  ExitCode Run(std::span<const std::string> arguments);

 private:
  // One command; `values` holds the flags that are known already. `program` begins its messages.
  ExitCode Execute(std::span<const std::string> words, FlagValues values, std::string_view program);
  // A line of a prompt or of standard input; a leading "kvcli" and leading flags are fine.
  ExitCode ExecuteLine(std::span<const std::string> words, FlagValues values,
                       std::string_view program);
  ExitCode Prompt(const FlagValues& values);
  ExitCode RunLines(const FlagValues& values);

  // Of arguments of `command`, if that is known.
  ExitCode Fail(std::string_view program, std::string_view asked, std::string_view wrong,
                const Command* command = nullptr);
  // Hands out what was printed; an error then turns success into failure.
  ExitCode Finish(ExitCode exit, std::string_view program, std::string_view asked);
  std::string HistoryPath(const FlagValues& values) const;

  Console& console_;
  Session session_;
  EditorMaker make_editor_;
};

}  // namespace kvd::cli
