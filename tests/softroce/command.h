// Runs commands in the guest.
#pragma once

#include <cstdint>

#include "tests/softroce/guest_config.h"

namespace kvd::softroce {

struct CommandResult {
  bool ended = true;    // in time
  int exit_status = 0;  // 128 + N if signal N ended it, as in a shell; 127 if it could not start
  uint64_t output_bytes = 0;  // what it printed
  uint64_t error_bytes = 0;
};

// Runs the configuration's "setup" with its output on the console and waits for it. Returns its
// exit status.
int RunSetup(const GuestConfig& config);

// Runs the configuration's command and passes its output to the host until it ended. Processes that
// it left behind go on but are no longer heard. If it has not ended after "timeout", the
// configuration's "late" is run, which may say why, and it is left behind too. Blocks.
CommandResult RunCommand(const GuestConfig& config);

}  // namespace kvd::softroce
