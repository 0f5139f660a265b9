#include "common/base/user_namespace.h"

#include <fstream>

namespace kvd {
namespace {

constexpr uint64_t kAllIds = 0xffff'ffff;  // but kNoId

UserNamespace::Ids Read(const std::string& map_path, const std::string& overflow_path) {
  UserNamespace::Ids ids;
  std::ifstream(overflow_path) >> ids.overflow;
  if (ids.overflow == 0) ids.overflow = UserNamespace::Ids{}.overflow;  // what a failed >> leaves
  std::ifstream map(map_path);
  uint64_t inside = 0, outside = 0, length = 0, mapped = 0;
  while (map >> inside >> outside >> length) mapped += length;
  ids.all_mapped = mapped >= kAllIds;
  return ids;
}

}  // namespace

UserNamespace UserNamespace::OfThisProcess(const std::string& proc) {
  return {.users = Read(proc + "/self/uid_map", proc + "/sys/kernel/overflowuid"),
          .groups = Read(proc + "/self/gid_map", proc + "/sys/kernel/overflowgid")};
}

}  // namespace kvd
