#include "common/admission/role.h"

namespace kvd {

const char* NameOf(Role role) {
  switch (role) {
    case Role::kNone:
      return "none";
    case Role::kRead:
      return "read";
    case Role::kReadWrite:
      return "read-write";
    case Role::kAdmin:
      return "admin";
  }
  return "unknown";
}

std::optional<Role> ParseRole(std::string_view name) {
  for (const Role role : {Role::kRead, Role::kReadWrite, Role::kAdmin}) {
    if (name == NameOf(role)) return role;
  }
  return std::nullopt;
}

}  // namespace kvd
