// Roles by name.
#pragma once

#include <optional>
#include <string_view>

#include "common/layout/hello.h"

namespace kvd {

// "none", "read", "read-write", "admin".
const char* NameOf(Role role);

// "read", "read-write" or "admin".
std::optional<Role> ParseRole(std::string_view name);

}  // namespace kvd
