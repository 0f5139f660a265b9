#include "server/store/numa_memory.h"

#include <numa.h>
#include <numaif.h>

#include <cerrno>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/machine_memory.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd {
namespace {

constexpr uint64_t kSamples = 64;

// What is wrong when the kernel does not let itself be told.
const char* Remedy(int error_number) {
  switch (error_number) {
    case EPERM:
      return "; a container needs the capability SYS_NICE for it (docker --cap-add=SYS_NICE)";
    case EINVAL:
      return "; the node is not there, or has no memory that this process may use (cpuset)";
    case ENOSYS:
      return "; this kernel knows nothing of NUMA";
    default:
      return "";
  }
}

}  // namespace

absl::Status BindToNode(void* base, uint64_t bytes, int node, bool strict) {
  bitmask* const nodes = numa_allocate_nodemask();
  int error_number = EINVAL;
  if (node >= 0 && static_cast<unsigned long>(node) < nodes->size) {
    numa_bitmask_setbit(nodes, static_cast<unsigned>(node));
    const int mode = strict ? MPOL_BIND : MPOL_PREFERRED;
    error_number = mbind(base, bytes, mode, nodes->maskp, nodes->size + 1, 0) == 0 ? 0 : errno;
  }
  numa_free_nodemask(nodes);
  if (error_number == 0) return absl::OkStatus();
  return ErrnoStatus(error_number, ToStd(absl::StrCat("binding the region to NUMA node ", node,
                                                      Remedy(error_number))));
}

std::string PagesElsewhere(const void* base, uint64_t bytes, int node) {
  uint64_t elsewhere = 0;
  for (uint64_t i = 0; i < kSamples; ++i) {
    const auto* const page = static_cast<const std::byte*>(base) + bytes / kSamples * i;
    int found = node;
    // The address is only looked up.
    if (get_mempolicy(&found, nullptr, 0, const_cast<std::byte*>(page),
                      MPOL_F_NODE | MPOL_F_ADDR) != 0) {
      return "";
    }
    if (found != node) ++elsewhere;
  }
  if (elsewhere == 0) return "";
  return absl::StrCat(elsewhere, " of ", kSamples,
                      " pages looked at lie on another NUMA node than ", node,
                      ", which had too few");
}

absl::Status CheckNodeMemory(uint64_t memory_bytes, int node) {
  const NodeMemory memory = ReadNodeMemory(node);
  if (memory.total_bytes == 0 || memory_bytes <= memory.available_bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--numa_node=", node, ": --memory=", FormatBytes(memory_bytes), ", and that node has ",
      FormatBytes(memory.available_bytes), " of ", FormatBytes(memory.total_bytes),
      " available; --numa_node=auto takes what is missing from other nodes, or run a kvd on each"));
}

}  // namespace kvd
