// Memory of one NUMA node.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace kvd {

// Has a mapping that has no pages yet take them from `node`: with `strict` from nowhere else, so
// that touching fails, or the kernel kills, where the node has too few; otherwise as long as there
// are any. What is there already stays. An error of errno's that names the node, and the remedy.
absl::Status BindToNode(void* base, uint64_t bytes, int node, bool strict);

// Looks at some of the pages, which must be there: "5 of 64 pages lie on another NUMA node than 1,
// which had too few"; empty: all are where they should be, or nobody knows.
std::string PagesElsewhere(const void* base, uint64_t bytes, int node);

// FailedPrecondition: that node cannot have so much in ordinary pages.
absl::Status CheckNodeMemory(uint64_t memory_bytes, int node);

}  // namespace kvd
