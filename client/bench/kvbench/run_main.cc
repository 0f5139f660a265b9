#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "client/bench/kvbench/application.h"
#include "client/cli/interrupt.h"
#include "common/base/clock.h"

namespace kvd::bench {

int RunMain(const Program& program, int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a write then says EPIPE
  cli::FdSource in(0, "standard input");
  cli::FdSink out(1);
  cli::FdSink err(2);
  cli::Console console = {
      .in = in,
      .out = out,
      .err = err,
      .err_is_terminal = ::isatty(2) == 1,
      .clock = RealClock::Get(),
      .interrupted = &cli::InterruptGuard::Seen,
      .environment = [](const char* name) { return static_cast<const char*>(std::getenv(name)); },
  };
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return static_cast<int>(RunProgram(program, console, arguments));
}

}  // namespace kvd::bench
