// RDMA devices as kvcli shows them: pure functions.
#pragma once

#include <span>
#include <string>

#include "client/cli/invocation.h"
#include "common/transport/verbs/device_facts.h"

namespace kvd::cli {

// A block of lines a device; a table with a row a GID; or one line of JSON, an array of objects
// with sizes in bytes.
std::string FormatDevices(OutputFormat format, std::span<const verbs::DeviceFacts> devices);

}  // namespace kvd::cli
