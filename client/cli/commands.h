// The commands themselves; command_table.cc lists them.
#pragma once

#include "client/cli/command.h"

namespace kvd::cli {

extern const Command kGetCommand;
extern const Command kMgetCommand;
extern const Command kExistsCommand;
extern const Command kPutCommand;
extern const Command kCasCommand;
extern const Command kAppendCommand;
extern const Command kPrependCommand;
extern const Command kDelCommand;
extern const Command kIncrCommand;
extern const Command kDecrCommand;
extern const Command kTouchCommand;
extern const Command kTtlCommand;
extern const Command kFlushCommand;
extern const Command kScanCommand;
extern const Command kBigkeysCommand;
extern const Command kLoadCommand;
extern const Command kDumpCommand;
extern const Command kStatCommand;
extern const Command kInfoCommand;
extern const Command kPingCommand;
extern const Command kLatencyCommand;
extern const Command kWatchCommand;
extern const Command kPlanCommand;
extern const Command kAdminCommand;
extern const Command kSlowlogCommand;
extern const Command kDevicesCommand;
extern const Command kDoctorCommand;
extern const Command kBundleCommand;
extern const Command kHelpCommand;
extern const Command kCompletionCommand;
extern const Command kVersionCommand;

}  // namespace kvd::cli
