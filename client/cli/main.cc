// kvcli: the process around client/cli/application.h.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/application.h"
#include "client/cli/client_store.h"
#include "client/cli/interrupt.h"
#include "client/cli/line_editor.h"
#include "client/cli/patient_connector.h"
#include "common/base/clock.h"

namespace {

// A standard stream that the caller closed must not become the number of a socket that is opened
// later: it is opened the wrong way round, so that using it is an error, as it should be.
void FillStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    if (::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) std::_Exit(7);
  }
}

bool IsSet(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool TerminalIsDumb() {
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr || std::string_view(terminal) == "dumb";
}

size_t TerminalColumns() {
  winsize size = {};
  return ::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

int main(int argc, char** argv) {
  FillStandardStreams();
  std::signal(SIGPIPE, SIG_IGN);  // a write then says EPIPE
  kvd::cli::FdSource in(0, "standard input");
  kvd::cli::FdSink out(1);
  kvd::cli::FdSink err(2);
  kvd::cli::Console console = {
      .in = in,
      .out = out,
      .err = err,
      .in_is_terminal = ::isatty(0) == 1,
      .out_is_terminal = ::isatty(1) == 1,
      .err_is_terminal = ::isatty(2) == 1 && !TerminalIsDumb(),
      .colour = ::isatty(2) == 1 && !IsSet("NO_COLOR") && !TerminalIsDumb(),
      .columns = TerminalColumns(),
      .clock = kvd::RealClock::Get(),
      .interrupted = &kvd::cli::InterruptGuard::Seen,
      .environment = [](const char* name) { return static_cast<const char*>(std::getenv(name)); },
      .pause = kvd::cli::SleepUnlessInterrupted,
  };
  kvd::cli::Application application(
      console, kvd::cli::ConnectPatiently(kvd::cli::ConnectClientStore, kvd::cli::RealPatience()),
      kvd::cli::MakeTerminalLineEditor);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return static_cast<int>(application.Run(arguments));
}
