// doctor --perf as a whole: what is measured over there and looked up here, in one report.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/cli/doctor_report.h"
#include "client/cli/invocation.h"

namespace kvd::cli {

struct PerfDiagnosis {
  absl::Status status;       // the server's error that ended it early; the report has the rest
  absl::Status left_behind;  // why keys that begin with `key_prefix` may be left
  std::string key_prefix;
};

// Connects to `target`, anew where it has to. `writes`: also puts items of its own, and deletes
// them.
PerfDiagnosis DiagnosePerf(Invocation& run, const std::string& target, bool writes,
                           DoctorReport& report);

}  // namespace kvd::cli
