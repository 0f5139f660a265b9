// A value as commands take it: an argument, a file, or standard input.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "client/cli/exit_code.h"
#include "client/cli/flags.h"
#include "client/cli/invocation.h"

namespace kvd::cli {

inline constexpr Flag kLiteralFlag = {
    "literal", '\0',    FlagKind::kSwitch,
    "",        "false", "VALUE is what it says, also where it is - or begins with @"};

struct ValueOrExit {
  std::optional<std::string> value;
  ExitCode exit = ExitCode::kDone;  // where there is none, which has been reported
};

// The value that the argument at `index` says: itself, - or @FILE; standard input where there is no
// such argument. The first argument is named in messages. The command has kLiteralFlag. A file or
// pipe is not read further than the server takes values, which it is asked where they are long.
ValueOrExit TakeValue(Invocation& run, size_t index);

}  // namespace kvd::cli
