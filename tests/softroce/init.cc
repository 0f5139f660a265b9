// The guest's first process: readies the machine, runs one command, tells the host how it ended.
//
// It says on the status line, in this order:
//   ready                          the command starts now
//   exited STATUS OUTPUT ERRORS    it ended; so many bytes were sent on the two other lines
//   late STATUS OUTPUT ERRORS      it did not end in time; the status means nothing
// or, at any time, "failed REASON" when the guest itself is at fault.
//
// On the host, where it is not the first process, it only prints the speed of the time stamp
// counter.

#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "tests/softroce/command.h"
#include "tests/softroce/file_systems.h"
#include "tests/softroce/guest_config.h"
#include "tests/softroce/host_link.h"
#include "tests/softroce/tsc_frequency.h"

namespace kvd::softroce {
namespace {

void Main() {
  const GuestConfig config = GuestConfig::Read("/config");
  MountKernelFolders();
  LoadModules();
  OpenHostLines();
  EnterHostRoot(config);
  const std::string name = "guest";
  if (sethostname(name.data(), name.size()) != 0) Fail("cannot set the name");
  errno = 0;
  const int setup_status = RunSetup(config);
  if (setup_status != 0) Fail("the setup ended with status " + std::to_string(setup_status));
  SendToHost(HostLine::kStatus, "ready\n");
  const CommandResult result = RunCommand(config);
  sync();  // what it wrote to shares
  SendToHost(HostLine::kStatus, (result.ended ? "exited " : "late ") +
                                    std::to_string(result.exit_status) + " " +
                                    std::to_string(result.output_bytes) + " " +
                                    std::to_string(result.error_bytes) + "\n");
}

}  // namespace
}  // namespace kvd::softroce

int main() {
  if (getpid() != 1) {
    printf("%" PRIu64 "\n", kvd::softroce::MeasureTsc_khz());
    return 0;
  }
  kvd::softroce::Main();
  // guest.sh ends the machine once it has all that was sent; ending it here could lose some.
  for (;;) pause();
}
