// The region of a kvd, changed from outside as failing memory would change it: behind kvd's back,
// whatever the mappings of its clients allow.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace kvd::test {

class ProcessMemory {
 public:
  // Of a child of this process. PermissionDenied where the machine does not let parents do this.
  static absl::StatusOr<std::unique_ptr<ProcessMemory>> Open(pid_t kvd);

  uint64_t region_bytes() const { return region_bytes_; }

  // Offsets in the region at which these bytes lie now.
  std::vector<uint64_t> Find(std::string_view bytes) const;

  void FlipBit(uint64_t region_offset, uint32_t bit) const;

 private:
  ProcessMemory() = default;

  UniqueFd memory_;
  uint64_t region_at_ = 0;
  uint64_t region_bytes_ = 0;
};

}  // namespace kvd::test
