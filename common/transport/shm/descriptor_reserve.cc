#include "common/transport/shm/descriptor_reserve.h"

#include <sys/resource.h>

#include <algorithm>

namespace kvd {

bool IsOfTheReserve(int new_fd) {
  rlimit limit{};
  if (new_fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  const rlim_t reserved = std::min<rlim_t>(kDescriptorsReserved, limit.rlim_cur / 8);
  return static_cast<rlim_t>(new_fd) + reserved >= limit.rlim_cur;
}

}  // namespace kvd
