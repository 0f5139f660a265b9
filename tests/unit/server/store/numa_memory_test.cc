#include "server/store/numa_memory.h"

#include <numa.h>
#include <sys/mman.h>

#include <cstring>

#include "server/store/region.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;

constexpr uint64_t kBytes = uint64_t{1} << 20;

struct Mapping {
  Mapping()
      : base(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(base != MAP_FAILED);
  }
  ~Mapping() { munmap(base, kBytes); }
  void* base;
};

bool Knows() { return numa_available() >= 0; }

}  // namespace

TEST_CASE(
    "NumaMemory: memory is bound to a node that is there, and lies there when it is touched") {
  if (!Knows()) KVD_SKIP("this kernel tells nothing of NUMA nodes");
  for (int node = 0; node <= numa_max_node(); ++node) {
    for (const bool strict : {false, true}) {
      const Mapping mapping;
      KVD_REQUIRE_OK(BindToNode(mapping.base, kBytes, node, strict));
      memset(mapping.base, 1, kBytes);
      CHECK(PagesElsewhere(mapping.base, kBytes, node).empty());
      CHECK_THAT(PagesElsewhere(mapping.base, kBytes, node + 1),
                 Contains("64 of 64 pages looked at lie on another NUMA node"));
    }
  }
}

TEST_CASE("NumaMemory: a node that is not there is an error that names it") {
  if (!Knows()) KVD_SKIP("this kernel tells nothing of NUMA nodes");
  const Mapping mapping;
  for (const int node : {-1, numa_max_node() + 1, 63, 1 << 20}) {
    const absl::Status bound = BindToNode(mapping.base, kBytes, node, true);
    KVD_REQUIRE_CODE(bound, kInvalidArgument);
    CHECK_THAT(MessageOf(bound), Contains("NUMA node " + std::to_string(node)));
  }
}

TEST_CASE("NumaMemory: a region lies on the node that was asked for") {
  if (!Knows()) KVD_SKIP("this kernel tells nothing of NUMA nodes");
  const int node = numa_max_node();
  RegionOptions options;
  options.memory_bytes = uint64_t{8} << 20;
  options.numa_node = node;
  options.numa_strict = true;
  for (const HugepagePolicy policy : {HugepagePolicy::kOff, HugepagePolicy::kPrefer}) {
    options.hugepages = policy;
    const auto region = Region::Create(options);
    KVD_REQUIRE_OK(region);
    CHECK((*region)->placement_note().empty());
    CHECK(PagesElsewhere((*region)->base(), (*region)->bytes(), node).empty());
  }
  options.numa_node = node + 1;
  CHECK_FALSE(Region::Create(options).ok());
  options.numa_strict = false;
  const auto anywhere = Region::Create(options);
  KVD_REQUIRE_OK(anywhere);
  CHECK_THAT((*anywhere)->placement_note(), Contains("NUMA node " + std::to_string(node + 1)));
}

TEST_CASE("NumaMemory: more than a node has is refused before it is taken") {
  if (!Knows()) KVD_SKIP("this kernel tells nothing of NUMA nodes");
  const absl::Status status = CheckNodeMemory(uint64_t{1} << 50, 0);
  KVD_REQUIRE_CODE(status, kFailedPrecondition);
  CHECK_THAT(MessageOf(status), Contains("--numa_node=0") && Contains("--numa_node=auto"));
  KVD_REQUIRE_OK(CheckNodeMemory(4096, 0));
}

}  // namespace kvd::test
