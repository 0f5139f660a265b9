// Where a kvd listens and a client looks when nobody says anything.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"

namespace kvd {

// root: /run/kvd/kvd.sock. Others: $XDG_RUNTIME_DIR/kvd.sock where that is set to an absolute path,
// otherwise /tmp/kvd-UID/kvd.sock.
std::string DefaultSocketPath();

// The same for a given user and environment (null: not set).
std::string DefaultSocketPathOf(uid_t uid, const char* xdg_runtime_dir);

// The default path is $XDG_RUNTIME_DIR's.
bool DefaultSocketPathIsFromEnvironment();

// `socket_path` is a default one whose directory is kvd's own, not the system's.
bool DefaultDirectoryIsMade(const std::string& socket_path);

// Makes such a directory if it is missing: mode 0755 under /run for root, 0700 under
// /tmp. PermissionDenied or FailedPrecondition: it cannot be made, or CheckDefaultDirectory does
// not accept it.
absl::Status PrepareDefaultDirectory(const std::string& socket_path);

// Anybody may make a directory in /tmp, so one there is believed only if it is the caller's own and
// writable by nobody else. PermissionDenied otherwise. Ok for any path elsewhere and for a
// directory that does not exist.
absl::Status CheckDefaultDirectory(const std::string& socket_path);

}  // namespace kvd
