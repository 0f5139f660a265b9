#include "common/base/machine_memory.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "common/base/units.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

// A root with just the files that a test writes.
class FakeRoot {
 public:
  void Write(const std::string& path, const std::string& content) {
    const std::filesystem::path full = this->path() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << content;
  }
  const std::string& path() const { return directory_.path(); }

 private:
  test::TempDir directory_;
};

constexpr char kMeminfo[] =
    "MemTotal:       8388608 kB\nMemFree:        1 kB\nMemAvailable:   4194304 "
    "kB\nHugePages_Total: 0\n";

TEST_CASE("MachineMemory: without a control group what is available is usable") {
  FakeRoot root;
  root.Write("/proc/meminfo", kMeminfo);
  const MachineMemory memory = ReadMachineMemory(root.path());
  REQUIRE(memory.total_bytes == 8 * kGiB);
  REQUIRE(memory.usable_bytes() == 4 * kGiB);
  REQUIRE(memory.Describe() == "4 GiB of 8 GiB are available");
}

TEST_CASE("MachineMemory: the tightest limit of all ancestors counts, less what is charged to it") {
  FakeRoot root;
  root.Write("/proc/meminfo", kMeminfo);
  root.Write("/proc/self/cgroup", "0::/outer/inner\n");
  root.Write("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
  root.Write("/sys/fs/cgroup/outer/memory.max", "1073741824\n");
  root.Write("/sys/fs/cgroup/outer/memory.current", "268435456\n");
  const MachineMemory memory = ReadMachineMemory(root.path());
  REQUIRE(memory.usable_bytes() == 768 * kMiB);
  REQUIRE(memory.Describe().find("768 MiB are left of the limit of 1 GiB") == 0);
  REQUIRE(memory.Describe().find("outer/memory.max") != std::string::npos);
}

TEST_CASE("MachineMemory: cached files that nobody uses do not count against a limit") {
  FakeRoot root;
  root.Write("/proc/meminfo", kMeminfo);
  root.Write("/proc/self/cgroup", "0::/\n");
  root.Write("/sys/fs/cgroup/memory.max", "1073741824\n");
  root.Write("/sys/fs/cgroup/memory.current", "1073741824\n");
  root.Write("/sys/fs/cgroup/memory.stat", "anon 5\ninactive_file 805306368\nactive_file 7\n");
  REQUIRE(ReadMachineMemory(root.path()).usable_bytes() == 768 * kMiB);
}

TEST_CASE("MachineMemory: inside a container the limit stands at the root of its control groups") {
  FakeRoot root;
  root.Write("/proc/meminfo", kMeminfo);
  root.Write("/proc/self/cgroup", "0::/\n");
  root.Write("/sys/fs/cgroup/memory.max", "536870912\n");
  REQUIRE(ReadMachineMemory(root.path()).usable_bytes() == 512 * kMiB);
}

TEST_CASE("MachineMemory: limits of version 1 of control groups are found") {
  FakeRoot root;
  root.Write("/proc/meminfo", kMeminfo);
  root.Write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n");
  root.Write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2147483648\n");
  REQUIRE(ReadMachineMemory(root.path()).usable_bytes() == 2 * kGiB);
}

TEST_CASE("MachineMemory: what cannot be read is no limit") {
  FakeRoot root;
  REQUIRE(ReadMachineMemory(root.path()).usable_bytes() == UINT64_MAX);
}

TEST_CASE("NodeMemory: what is free and what the kernel can drop is available") {
  FakeRoot root;
  root.Write(
      "/sys/devices/system/node/node1/meminfo",
      "\nNode 1 MemTotal:       1048576 kB\nNode 1 MemFree:         1024 kB\n"
      "Node 1 MemUsed:        1 kB\nNode 1 Active(anon):   7 kB\nNode 1 Active(file):   1024 kB\n"
      "Node 1 Inactive(file): 2048 kB\nNode 1 SReclaimable:   512 kB\nNode 1 HugePages_Free: 3\n");
  const NodeMemory memory = ReadNodeMemory(1, root.path());
  CHECK(memory.total_bytes == kGiB);
  CHECK(memory.available_bytes == 4608 * kKiB);
  CHECK(ReadNodeMemory(0, root.path()).total_bytes == 0);
  root.Write("/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", "3\n");
  CHECK(FreeHugepagesOfNode(1, 2 * kMiB, root.path()) == 3);
  CHECK(FreeHugepagesOfNode(0, 2 * kMiB, root.path()) == 0);
}

TEST_CASE(
    "FreeHugepages: counts what is free, not reserved, and may still be taken beyond the pool") {
  FakeRoot root;
  const std::string pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  REQUIRE(FreeHugepages(2 * kMiB, root.path()) == 0);
  root.Write(pool + "free_hugepages", "10\n");
  root.Write(pool + "resv_hugepages", "3\n");
  REQUIRE(FreeHugepages(2 * kMiB, root.path()) == 7);
  root.Write(pool + "nr_overcommit_hugepages", "6\n");
  root.Write(pool + "surplus_hugepages", "2\n");
  REQUIRE(FreeHugepages(2 * kMiB, root.path()) == 11);
}

TEST_CASE("TransparentHugepagesForSharedMemory: follows the kernel's setting") {
  FakeRoot root;
  const std::string file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  REQUIRE_FALSE(TransparentHugepagesForSharedMemory(root.path()));
  root.Write(file, "always within_size advise [never] deny force\n");
  REQUIRE_FALSE(TransparentHugepagesForSharedMemory(root.path()));
  root.Write(file, "always within_size [advise] never deny force\n");
  REQUIRE(TransparentHugepagesForSharedMemory(root.path()));
}

}  // namespace
}  // namespace kvd
