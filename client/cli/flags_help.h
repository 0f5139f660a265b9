// Flags as --help shows them.
#pragma once

#include <span>
#include <string>

#include "client/cli/flags.h"

namespace kvd::cli {

// A line or more for each flag: how it is given, and from column 30 to 80 what it does.
void AppendFlags(std::span<const Flag> flags, std::string& out);

}  // namespace kvd::cli
