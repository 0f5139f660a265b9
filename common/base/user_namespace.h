// Which user and group ids of others mean anything to this process.
//
// In a user namespace that does not map all ids, the kernel shows every user of outside as one and
// the same id, the overflow id (65534 mostly, "nobody"). It says nothing of who that is, and may be
// this process's own.
#pragma once

#include <cstdint>
#include <string>

namespace kvd {

// What stands for whom nobody vouches for; no process ever has it.
inline constexpr uint32_t kNoId = static_cast<uint32_t>(-1);

struct UserNamespace {
  // What it maps of one kind of ids.
  struct Ids {
    bool all_mapped = false;
    uint32_t overflow = 65534;

    // The id itself if it means somebody, otherwise kNoId.
    uint32_t Vouched(uint32_t id) const { return all_mapped || id != overflow ? id : kNoId; }
  };
  Ids users;
  Ids groups;

  // This process's. What /proc does not say is taken as what proves the least.
  static UserNamespace OfThisProcess(const std::string& proc = "/proc");
};

}  // namespace kvd
