// What the doctor found, and how it is shown.
#pragma once

#include <string>
#include <vector>

#include "client/cli/exit_code.h"
#include "client/cli/failure.h"
#include "client/cli/invocation.h"
#include "common/transport/verbs/local_check.h"

namespace kvd::cli {

struct DoctorReport {
  std::vector<verbs::CheckResult> results;
  ExitCode exit = ExitCode::kDone;  // of the first check that failed

  void Add(verbs::CheckResult result, ExitCode exit_if_failed = ExitCode::kNotFound);
  void AddOk(std::string check, std::string found);
  // The failure's advice becomes the remedy.
  void AddFailed(std::string check, const Failure& failure);

  size_t failed() const;
};

// A line a check, a table, or one JSON object.
std::string FormatReport(OutputFormat format, const DoctorReport& report);

}  // namespace kvd::cli
