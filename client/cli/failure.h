// What went wrong, as kvcli tells it: an exit code and one line of text.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "client/cli/exit_code.h"

namespace kvd::cli {

struct Failure {
  ExitCode code = ExitCode::kUsage;
  std::string text;  // "<what went wrong>; <what to do>"
};

// Of an operation of the store. The status's own advice (what follows "; " in its message) is kept;
// where it brings none, the advice for its code is added. `command`: whose help an argument is
// explained in; empty: the overview's.
Failure StoreFailure(const absl::Status& status, std::string_view command = {});

// A target that can only be reached by RDMA.
bool IsRdmaTarget(std::string_view target);

// Of connecting to `target`: whatever does not say otherwise means that there is no server there.
Failure ConnectFailure(std::string_view target, const absl::Status& status);

// Of a file, pipe or terminal on this side, as it was opened, read or written.
Failure LocalIoFailure(const absl::Status& status);

// Of arguments. `wrong` may bring its own advice; otherwise that is to see the help of `command`,
// or the overview if it is empty.
Failure UsageFailure(std::string_view wrong, std::string_view command = {});

// "kvcli: <asked>: <text>\n", in one line whatever is in its parts. `program` is "kvcli: ", or what
// else stands for where the command came from; empty at the prompt, where advice names commands
// without "kvcli".
std::string FailureLine(std::string_view program, std::string_view asked, const Failure& failure);

}  // namespace kvd::cli
