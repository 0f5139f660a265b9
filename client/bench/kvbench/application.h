// A benchmark program without its process: arguments in, exit code out.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/bench/kvbench/options.h"
#include "client/bench/kvbench/store.h"
#include "client/cli/console.h"
#include "client/cli/exit_code.h"

namespace kvd::bench {

// kvbench, or one of its kind that drives other stores.
struct Program {
  std::string_view name;     // "kvbench"
  std::string_view summary;  // the first lines of --help
  // Where clients connect to. InvalidArgument names --server and what is allowed.
  std::function<absl::StatusOr<StoreMaker>(const Options& options)> stores;
  // What a target that was left out means, for the report.
  std::function<std::string(const Options& options)> target;
};

// Runs what `arguments` (without the program's name) ask for. A Ctrl-C ends the measurement, and
// what was measured is reported.
cli::ExitCode RunProgram(const Program& program, cli::Console& console,
                         std::span<const std::string> arguments);

// The console of this process, as the standard streams are; argv as arguments.
int RunMain(const Program& program, int argc, char** argv);

}  // namespace kvd::bench
