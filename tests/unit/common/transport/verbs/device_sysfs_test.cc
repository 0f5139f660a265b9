// What is read from /sys and /proc, with files that a test makes; and the words and addresses.
#include "common/transport/verbs/device_sysfs.h"

#include <filesystem>
#include <fstream>

#include "common/transport/verbs/device_info.h"
#include "common/transport/verbs/gid_info.h"
#include "common/transport/verbs/local_check_kernel.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::verbs::test {
namespace {

class FakeRoot {
 public:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path full = directory_.Join(path);
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  const std::string& path() const { return directory_.path(); }

 private:
  kvd::test::TempDir directory_;
};

TEST_CASE("Sysfs: the kernel's devices, and those with an entry for programs") {
  FakeRoot root;
  CHECK(KernelDevices(root.path()).empty());
  CHECK(UverbsDevices(root.path()).empty());
  root.Write("sys/class/infiniband/mlx5_1/node_type", "1: CA\n");
  root.Write("sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
  root.Write("sys/class/infiniband_verbs/abi_version", "6\n");
  root.Write("sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_1\n");
  CHECK(KernelDevices(root.path()) == std::vector<std::string>{"mlx5_0", "mlx5_1"});
  CHECK(UverbsDevices(root.path()) == std::vector<std::string>{"mlx5_1"});
}

TEST_CASE("Sysfs: the network device of a port, for RoCE, Soft-RoCE and InfiniBand") {
  FakeRoot root;
  CHECK(NetdevOfPort("rxe0", 1, root.path()).empty());
  root.Write("sys/class/infiniband/ib0/device/net/ibp1/dev_port", "0\n");
  root.Write("sys/class/infiniband/ib0/device/net/ibp2/dev_port", "1\n");
  CHECK(NetdevOfPort("ib0", 1, root.path()) == "ibp1");
  CHECK(NetdevOfPort("ib0", 2, root.path()) == "ibp2");
  CHECK(NetdevOfPort("ib0", 3, root.path()).empty());
  root.Write("sys/class/infiniband/rxe0/parent", "eth1\n");
  CHECK(NetdevOfPort("rxe0", 1, root.path()) == "eth1");
  root.Write("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth2\n");
  CHECK(NetdevOfPort("rxe0", 1, root.path()) == "eth2");
}

TEST_CASE("Sysfs: NUMA node, and devices without hardware") {
  FakeRoot root;
  root.Write("sys/class/infiniband/mlx5_0/device/numa_node", "1\n");
  root.Write("sys/class/infiniband/mlx5_1/device/numa_node", "-1\n");
  root.Write("sys/class/infiniband/rxe0/parent", "eth1\n");
  CHECK(NumaNodeOfDevice("mlx5_0", root.path()) == 1);
  CHECK(NumaNodeOfDevice("mlx5_1", root.path()) == -1);
  CHECK(NumaNodeOfDevice("rxe0", root.path()) == -1);
  CHECK(!IsSoftwareDevice("mlx5_0", root.path()));
  CHECK(IsSoftwareDevice("rxe0", root.path()));
}

TEST_CASE("Kernel: the namespace mode") {
  FakeRoot root;
  CHECK(ReadNamespaceMode(root.path()) == NamespaceMode::kUnknown);
  root.Write("sys/module/ib_core/parameters/netns_mode", "Y\n");
  CHECK(ReadNamespaceMode(root.path()) == NamespaceMode::kShared);
  root.Write("sys/module/ib_core/parameters/netns_mode", "N\n");
  CHECK(ReadNamespaceMode(root.path()) == NamespaceMode::kExclusive);
}

TEST_CASE("Kernel: CAP_IPC_LOCK counts in the machine's user namespace only") {
  FakeRoot root;
  CHECK(!MayLockWithoutLimit(root.path()));
  root.Write("proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\n");
  CHECK(MayLockWithoutLimit(root.path()));
  root.Write("proc/self/uid_map", "         0          0 4294967295\n");
  CHECK(MayLockWithoutLimit(root.path()));
  root.Write("proc/self/uid_map", "         0       1000          1\n");
  CHECK(!MayLockWithoutLimit(root.path()));
  root.Write("proc/self/uid_map", "         0          0 4294967295\n");
  root.Write("proc/self/status", "CapEff:\t000001ffffffbfff\n");
  CHECK(!MayLockWithoutLimit(root.path()));
}

TEST_CASE("Kernel: hugepages of the pool and of each node") {
  FakeRoot root;
  LocalFacts facts;
  ReadHugepages(facts, root.path());
  CHECK(facts.hugepages_free == 0);
  CHECK(facts.hugepage_nodes.empty());
  const std::string pool = "hugepages/hugepages-2048kB/";
  root.Write("sys/kernel/mm/" + pool + "nr_hugepages", "20\n");
  root.Write("sys/kernel/mm/" + pool + "free_hugepages", "12\n");
  root.Write("sys/kernel/mm/" + pool + "resv_hugepages", "2\n");
  root.Write("sys/kernel/mm/" + pool + "nr_overcommit_hugepages", "5\n");
  root.Write("sys/kernel/mm/" + pool + "surplus_hugepages", "1\n");
  root.Write("sys/devices/system/node/node0/" + pool + "nr_hugepages", "8\n");
  root.Write("sys/devices/system/node/node0/" + pool + "free_hugepages", "0\n");
  root.Write("sys/devices/system/node/node2/" + pool + "nr_hugepages", "12\n");
  root.Write("sys/devices/system/node/node2/" + pool + "free_hugepages", "12\n");
  root.Write("sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "3\n");
  ReadHugepages(facts, root.path());
  CHECK(facts.gigantic_free == 3);
  CHECK(facts.hugepages_total == 20);
  CHECK(facts.hugepages_free == 14);
  REQUIRE(facts.hugepage_nodes.size() == 2);
  CHECK(facts.hugepage_nodes[1].node == 2);
  CHECK(facts.hugepage_nodes[1].free == 12);
}

TEST_CASE("GID: its address as text, and which are link-local") {
  const GidBytes mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, 1};
  const GidBytes link_local = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0x77, 0, 1};
  const GidBytes global = {0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  CHECK(GidText(mapped) == "10.77.0.1");
  CHECK(GidText(link_local) == "fe80::ff:fe77:1");
  CHECK(GidText(global) == "fd77::2");
  CHECK(!IsLinkLocal(mapped));
  CHECK(IsLinkLocal(link_local));
  CHECK(!IsLinkLocal(global));
}

TEST_CASE("Device: speed by code, and names of values that no device should report") {
  CHECK(SpeedGbps(32, 2) == 100);
  CHECK(SpeedGbps(1, 1) == 2.5);
  CHECK(SpeedGbps(64, 16) == 100);
  CHECK(SpeedGbps(0, 2) == 0);
  CHECK(SpeedGbps(32, 3) == 0);
  CHECK(NameOf(static_cast<Fabric>(99)) == "unknown");
  CHECK(NameOf(static_cast<PortState>(99)) == "unknown");
  CHECK(NameOf(static_cast<GidType>(99)) == "unknown");
}

TEST_CASE("Device: listing agrees with the kernel on whether there is any") {
  const DeviceListing listing = ListDevices();
  if (KernelDevices().empty()) {
    CHECK(listing.devices.empty());
    return;
  }
  for (const DeviceFacts& device : listing.devices) CHECK(!device.name.empty());
}

}  // namespace
}  // namespace kvd::verbs::test
