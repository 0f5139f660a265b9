// What a user names as a server, taken apart.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace kvd {

struct Target {
  std::string socket_path;
  std::string name;  // for people: "shm:/run/kvd/kvd.sock"
};

// "shm:PATH", "/PATH", or empty: the default socket of this user. InvalidArgument names the target and says what forms
// there are.
absl::StatusOr<Target> ParseTarget(std::string_view text);

}  // namespace kvd
