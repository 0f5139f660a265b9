// The doctor's checks of this machine.
#pragma once

#include <string_view>

#include "client/cli/doctor_report.h"
#include "client/cli/invocation.h"
#include "common/transport/verbs/local_check_facts.h"

namespace kvd::cli {

// For a kvd, or a client of `target`, that is to run here as the command's flags say: --device, and
// where it has them --address and --memory.
void CheckThisMachine(Invocation& run, std::string_view target, const verbs::LocalFacts& facts,
                      DoctorReport& report);

}  // namespace kvd::cli
