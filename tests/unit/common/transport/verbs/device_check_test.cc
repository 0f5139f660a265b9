// Each row of the table of local checks, with made-up facts: what it finds, how bad that is, and
// what it says to do.
#include <cerrno>

#include "common/transport/verbs/local_check.h"
#include "tests/support/test.h"
#include "tests/unit/common/transport/verbs/device_made_up.h"

namespace kvd::verbs::test {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kMiB = uint64_t{1} << 20;

LocalNeeds Required() {
  LocalNeeds needs;
  needs.rdma_required = true;
  needs.memory_bytes = 64 * kMiB;
  return needs;
}

// The results of one check; fails the test if there are none.
std::vector<CheckResult> ResultsOf(const LocalFacts& facts, const LocalNeeds& needs,
                                   const std::string& check) {
  std::vector<CheckResult> results;
  std::string all;
  for (const CheckResult& result : CheckLocal(facts, needs)) {
    all += result.check + " | ";
    if (result.check == check) results.push_back(result);
  }
  INFO("checks: " << all);
  REQUIRE(!results.empty());
  return results;
}

// The worst of them.
CheckResult Worst(const LocalFacts& facts, const LocalNeeds& needs, const std::string& check) {
  CheckResult worst;
  for (CheckResult& result : ResultsOf(facts, needs, check)) {
    if (result.outcome >= worst.outcome) worst = std::move(result);
  }
  // Whatever is not well says what to do.
  CHECK(worst.remedy.empty() == (worst.outcome == CheckOutcome::kOk));
  return worst;
}

void CheckFailed(const LocalFacts& facts, const LocalNeeds& needs, const std::string& check,
                 const std::vector<std::string>& found, const std::vector<std::string>& remedy) {
  const CheckResult result = Worst(facts, needs, check);
  CHECK(result.outcome == CheckOutcome::kFailed);
  for (const std::string& text : found) CHECK_THAT(result.found, Catch::Contains(text));
  for (const std::string& text : remedy) CHECK_THAT(result.remedy, Catch::Contains(text));
  // Start-up says it with the same words.
  CHECK(!WhyNoRdma(facts, needs).empty());
}

LocalFacts NoDevices(int list_errno) {
  LocalFacts facts;
  facts.listing.list_errno = list_errno;
  facts.addresses = {{"lo", "127.0.0.1", true}, {"ens3", "192.0.2.5", false}};
  return facts;
}

TEST_CASE("Local check: a machine on which all is well passes every check") {
  const LocalFacts facts = MakeFacts();
  LocalNeeds needs = Required();
  needs.hugepages = HugepageNeed::kRequired;
  for (const CheckResult& result : CheckLocal(facts, needs)) {
    INFO(result.check << ": " << TextOf(result));
    CHECK(result.outcome == CheckOutcome::kOk);
    CHECK(result.remedy.empty());
    CHECK(!result.found.empty());
  }
  CHECK(WhyNoRdma(facts, needs).empty());
  CHECK(RdmaAddresses(facts) == std::vector<std::string>{"10.77.0.1 (rxea)", "10.77.0.2 (rxeb)"});
  CHECK(Worst(facts, needs, "port rxea/1").found ==
        "is ACTIVE, RoCE, va, MTU 1024 of 4096, 25 Gb/s");
}

TEST_CASE("Local check: no RDMA in the kernel leaves shared memory and says how to try Soft-RoCE") {
  const LocalFacts facts = NoDevices(ENOSYS);
  const CheckResult result = Worst(facts, {}, "device");
  CHECK(result.outcome == CheckOutcome::kWarning);
  CHECK(TextOf(result) ==
        "no RDMA support in this kernel; using shared memory; to try Soft-RoCE: modprobe rdma_rxe; "
        "rdma link add rxe0 type rxe netdev ens3");
  CheckFailed(facts, Required(), "device", {"no RDMA support in this kernel"}, {"rdma link add"});
  CHECK_THAT(WhyNoRdma(facts, {}), !Catch::Contains("shared memory"));
}

TEST_CASE("Local check: no device: the driver's absence and the namespace mode are told apart") {
  LocalFacts facts = NoDevices(0);
  CheckFailed(facts, Required(), "device", {"no RDMA device"}, {"modprobe mlx5_ib", "rdma_rxe"});
  facts.namespace_mode = NamespaceMode::kExclusive;
  CheckFailed(facts, Required(), "device", {"network namespace", "exclusive"},
              {"rdma dev set DEVICE netns"});
}

TEST_CASE("Local check: a device of the kernel without a provider or without ib_uverbs") {
  LocalFacts facts = NoDevices(0);
  facts.kernel_devices = facts.uverbs_devices = {"mlx5_0"};
  CheckFailed(facts, Required(), "device", {"mlx5_0", "no provider"}, {"ibverbs-providers"});
  facts.has_device_directory = false;
  CheckFailed(facts, Required(), "device", {"mlx5_0", "no /dev/infiniband here"},
              {"--device=/dev/infiniband", "no PrivateDevices=yes"});
  facts.uverbs_devices.clear();
  facts.listing.list_errno = ENOSYS;
  CheckFailed(facts, Required(), "device", {"mlx5_0", "ib_uverbs is not loaded"},
              {"modprobe ib_uverbs"});
}

TEST_CASE("Local check: any other failure of the list is shown with its errno") {
  CheckFailed(NoDevices(EACCES), Required(), "device", {"Permission denied", "errno 13"},
              {"--device=/dev/infiniband"});
}

TEST_CASE("Local check: a provider that is missing for one of several devices is a warning") {
  LocalFacts facts = MakeFacts();
  facts.kernel_devices.push_back("mlx5_0");
  const CheckResult result = Worst(facts, Required(), "provider");
  CHECK(result.outcome == CheckOutcome::kWarning);
  CHECK_THAT(result.found, Catch::Contains("mlx5_0"));
  CHECK(WhyNoRdma(facts, Required()).empty());
}

TEST_CASE(
    "Local check: a named device that is absent has failed and those that are there are named") {
  LocalNeeds needs;  // even where RDMA is no must: it was named
  needs.device = "mlx5_7";
  CheckFailed(MakeFacts(), needs, "device mlx5_7", {"no RDMA device mlx5_7"}, {"rxea, rxeb"});
  LocalFacts facts = MakeFacts();
  facts.kernel_devices.push_back("mlx5_7");
  CheckFailed(facts, needs, "device mlx5_7", {"no provider"}, {"ibverbs-providers"});
}

TEST_CASE("Local check: device files that may not be opened are named, and containers' remedy") {
  LocalFacts facts = MakeFacts();
  facts.device_files[0].error_number = EACCES;
  CheckFailed(facts, Required(), "permission",
              {"/dev/infiniband/rxea_uverbs", "Permission denied", "errno 13"},
              {"group", "--device=/dev/infiniband"});
  facts.device_files[0].error_number = EPERM;
  CheckFailed(facts, Required(), "permission", {"rxea_uverbs", "errno 1"},
              {"control group", "DeviceAllow=/dev/infiniband/rxea_uverbs rw"});
  facts.device_files[0].error_number = 0;
  facts.device_files[2].error_number = ENOENT;
  CheckFailed(facts, Required(), "permission", {"/dev/infiniband/rdma_cm", "errno 2"},
              {"modprobe rdma_ucm", "PrivateDevices"});
  facts.device_files[2].error_number = EIO;
  CheckFailed(facts, Required(), "permission", {"/dev/infiniband/rdma_cm", "errno 5"}, {"dmesg"});
}

TEST_CASE("Local check: with a named device, the files and ports of others do not matter") {
  LocalFacts facts = MakeFacts();
  facts.device_files[0].error_number = EACCES;
  facts.listing.devices[0].open_errno = EACCES;
  facts.listing.devices[0].ports[0].state = PortState::kDown;
  LocalNeeds needs = Required();
  needs.device = "rxeb";
  CHECK(WhyNoRdma(facts, needs).empty());
}

TEST_CASE("Local check: a device whose file opens but which does not answer") {
  LocalFacts facts = MakeFacts();
  facts.listing.devices[0].open_errno = EIO;
  CheckFailed(facts, Required(), "device rxea", {"errno 5"}, {"dmesg"});
  facts.listing.devices[0].open_errno = ENOMEM;
  CheckFailed(facts, Required(), "device rxea", {"errno 12"}, {"LimitMEMLOCK"});
}

TEST_CASE("Local check: the limit of locked memory against what is needed") {
  LocalFacts facts = MakeFacts();
  LocalNeeds needs = Required();
  needs.buffers_bytes = 8 * kMiB;
  facts.memlock_limit_bytes = 8 * kMiB;
  CheckFailed(facts, needs, "locked memory", {"need 72 MiB", "RLIMIT_MEMLOCK is 8 MiB"},
              {"LimitMEMLOCK=infinity", "ulimit -l", "--ulimit memlock=-1", "IPC_LOCK"});
  facts.memlock_limit_bytes = 72 * kMiB;
  CHECK(Worst(facts, needs, "locked memory").outcome == CheckOutcome::kOk);
  facts.memlock_limit_bytes = 0;
  facts.memlock_unlimited = true;
  CHECK(Worst(facts, needs, "locked memory").outcome == CheckOutcome::kOk);
}

TEST_CASE("Local check: a region larger than the device can register") {
  LocalFacts facts = MakeFacts();
  LocalNeeds needs = Required();
  needs.memory_bytes = uint64_t{1} << 37;
  facts.memlock_unlimited = true;
  facts.listing.devices[1].max_mr_bytes = uint64_t{1} << 36;
  CheckFailed(facts, needs, "memory region of rxeb", {"need 128 GiB", "64 GiB"},
              {"--memory=68719476736"});
}

TEST_CASE("Local check: more memory than the machine has is a failure, hugepages aside") {
  LocalFacts facts = MakeFacts();
  facts.hugepages_total = facts.hugepages_free = 0;
  facts.memory.total_bytes = 23 * kGiB;
  facts.memory.available_bytes = 22 * kGiB;
  LocalNeeds needs;
  needs.memory_bytes = 64 * kGiB;
  needs.hugepages = HugepageNeed::kPreferred;
  CheckResult result = Worst(facts, needs, "memory");
  CHECK(result.outcome == CheckOutcome::kFailed);
  CHECK(result.found == "need 64 GiB, 22 GiB of 23 GiB are available");
  CHECK(result.remedy == "--memory=22528m or less, or a machine with more");
  facts.memory.limit_bytes = 2 * kGiB;
  facts.memory.limit_name = "/sys/fs/cgroup/memory.max";
  result = Worst(facts, needs, "memory");
  CHECK_THAT(result.remedy, Catch::StartsWith("--memory=2048m or less, or raise that limit"));
  // Of the kernel's pool, which is not among what is available.
  facts.hugepages_free = 32 * 1024;
  CHECK(Worst(facts, needs, "memory").outcome == CheckOutcome::kOk);
  needs.hugepages = HugepageNeed::kNone;
  CHECK(Worst(facts, needs, "memory").outcome == CheckOutcome::kFailed);
  needs.memory_bytes = kGiB;
  CHECK(Worst(facts, needs, "memory").outcome == CheckOutcome::kOk);
  facts.memory = {};
  needs.memory_bytes = 64 * kGiB;
  CHECK(Worst(facts, needs, "memory").outcome == CheckOutcome::kOk);
}

TEST_CASE("Local check: why there is no device to listen on, with what to do") {
  LocalFacts facts = MakeFacts();
  LocalNeeds needs;
  CHECK(WhyNoDevice(facts, needs).empty());
  needs.device = "mlx5_0";
  CHECK(WhyNoDevice(facts, needs) == "there is no RDMA device mlx5_0; name one of rxea, rxeb");
  needs.device = "";
  facts = {};
  facts.listing.list_errno = ENOSYS;
  CHECK_THAT(WhyNoDevice(facts, needs),
             Catch::StartsWith("no RDMA support in this kernel; to try Soft-RoCE: modprobe"));
}

TEST_CASE("Local check: hugepages needed against those free, by node") {
  LocalFacts facts = MakeFacts();
  facts.hugepages_total = 20;
  facts.hugepages_free = 10;
  facts.hugepage_nodes = {{0, 12, 8}, {1, 8, 2}};
  LocalNeeds needs = Required();
  needs.hugepages = HugepageNeed::kRequired;
  CheckResult result = Worst(facts, needs, "hugepages");
  CHECK(result.outcome == CheckOutcome::kFailed);
  CHECK(result.found == "need 32 x 2 MiB, free 10 (node 0: 8, node 1: 2)");
  // The 10 that somebody uses stay theirs.
  CHECK(result.remedy == "sysctl vm.nr_hugepages=42 or --hugepages=off");
  needs.hugepages = HugepageNeed::kPreferred;
  CHECK(Worst(facts, needs, "hugepages").outcome == CheckOutcome::kWarning);
  needs.memory_bytes = 20 * kMiB;
  CHECK(Worst(facts, needs, "hugepages").outcome == CheckOutcome::kOk);
  needs.memory_bytes = uint64_t{3} << 30;
  facts.gigantic_free = 2;
  CHECK(Worst(facts, needs, "hugepages").outcome == CheckOutcome::kWarning);
  facts.gigantic_free = 3;
  CHECK(Worst(facts, needs, "hugepages").found == "need 3 x 1 GiB, free 3");
  needs.hugepages = HugepageNeed::kNone;
  for (const CheckResult& other : CheckLocal(facts, needs)) CHECK(other.check != "hugepages");
}

TEST_CASE("Local check: a port that is down, by what it is connected with") {
  LocalFacts facts = MakeFacts();
  PortFacts& port = facts.listing.devices[0].ports[0];
  port.state = PortState::kDown;
  port.physical_state = "Disabled";
  // The other device's port still works.
  CHECK(Worst(facts, Required(), "port rxea/1").outcome == CheckOutcome::kWarning);
  facts.listing.devices[1].ports[0].state = PortState::kDown;
  CheckFailed(facts, Required(), "port rxea/1", {"DOWN", "Disabled"}, {"ip link set va up"});
  port.fabric = Fabric::kInfiniBand;
  CheckFailed(facts, Required(), "port rxea/1", {"DOWN"}, {"cable"});
  port.state = PortState::kInit;
  CheckFailed(facts, Required(), "port rxea/1", {"INIT"}, {"subnet manager", "opensm"});
}

TEST_CASE("Local check: an address is looked for among those of RDMA ports") {
  LocalFacts facts = MakeFacts();
  LocalNeeds needs = Required();
  needs.address = "10.77.0.2";
  CHECK(Worst(facts, needs, "address 10.77.0.2").found == "is on rxeb/1, vb");
  needs.address = "fe80::1%va";
  CHECK(Worst(facts, needs, "address fe80::1%va").found == "is on rxea/1, va");
  needs.address = "fe80:0::0001";
  CHECK(Worst(facts, needs, "address fe80:0::0001").outcome == CheckOutcome::kOk);
  needs.address = "fe80::1%vb";
  CheckFailed(facts, needs, "address fe80::1%vb", {"no interface here has it"},
              {"10.77.0.1 (rxea)"});
  needs.address = "192.0.2.5";
  CheckFailed(facts, needs, "address 192.0.2.5", {"eth0", "no RDMA device uses"},
              {"10.77.0.1 (rxea)", "rdma link add rxe0 type rxe netdev eth0"});
  facts.namespace_mode = NamespaceMode::kExclusive;
  CheckFailed(facts, needs, "address 192.0.2.5", {"RDMA namespace mode: exclusive"}, {});
  needs.address = "198.51.100.1";
  CheckFailed(facts, needs, "address 198.51.100.1", {"no interface here has it"}, {"10.77.0.2"});
  needs.address = "10.77.0";
  CheckFailed(facts, needs, "address 10.77.0", {"no IPv4 or IPv6 address"}, {"10.77.0.2"});
  needs.device = "rxea";
  needs.address = "10.77.0.2";
  CheckFailed(facts, needs, "address 10.77.0.2", {"vb, which no port of rxea uses"},
              {"10.77.0.1 (rxea)"});
}

TEST_CASE("Local check: a port without an address that others can reach") {
  LocalFacts facts = MakeFacts();
  std::erase_if(facts.addresses,
                [](const auto& address) { return address.address == "10.77.0.1"; });
  CheckResult result = Worst(facts, Required(), "address of rxea/1");
  CHECK(result.outcome == CheckOutcome::kWarning);
  CHECK(result.found == "va has only link-local addresses");
  facts.listing.devices[0].ports[0].gids.clear();
  CHECK_THAT(Worst(facts, Required(), "address of rxea/1").found, Catch::Contains("no GID"));
  PortFacts& port = facts.listing.devices[0].ports[0];
  port.netdev.clear();
  CHECK_THAT(Worst(facts, Required(), "address of rxea/1").found,
             Catch::Contains("not in this network namespace"));
  port.fabric = Fabric::kInfiniBand;
  result = Worst(facts, Required(), "address of rxea/1");
  CHECK_THAT(result.found, Catch::Contains("IPoIB"));
  CHECK_THAT(result.remedy, Catch::Contains("--connect=tcp"));
}

TEST_CASE("Local check: a kvd without RDMA says why, and how if it only was not asked to") {
  LocalFacts facts = MakeFacts();
  CHECK(WhyRdmaIsNotUp(facts, {}, /*listening=*/false) ==
        "not asked for; to serve 10.77.0.1 (rxea), 10.77.0.2 (rxeb) too, give "
        "--listen=ADDRESS:7711");
  CHECK(!WhyRdmaIsNotUp(facts, {}, /*listening=*/true).empty());
  facts.addresses.clear();
  CHECK_THAT(WhyRdmaIsNotUp(facts, {}, /*listening=*/false), Catch::Contains("to serve rxea too"));
  for (DeviceFacts& device : facts.listing.devices) device.ports[0].state = PortState::kDown;
  CHECK_THAT(WhyRdmaIsNotUp(facts, {}, /*listening=*/false), Catch::Contains("ip link set va up"));
  // Where there is no device and nobody asked, no advice.
  CHECK(WhyRdmaIsNotUp(NoDevices(ENOSYS), {}, /*listening=*/false) ==
        "no RDMA support in this kernel");
  CHECK_THAT(WhyRdmaIsNotUp(NoDevices(ENOSYS), {}, /*listening=*/true),
             Catch::Contains("modprobe rdma_rxe"));
}

TEST_CASE("Local check: the namespace mode is said where it is known") {
  LocalFacts facts = MakeFacts();
  CHECK_THAT(Worst(facts, Required(), "namespaces").found, Catch::Contains("shared"));
  facts.namespace_mode = NamespaceMode::kExclusive;
  CHECK_THAT(Worst(facts, Required(), "namespaces").found, Catch::Contains("exclusive"));
  facts.namespace_mode = NamespaceMode::kUnknown;
  for (const CheckResult& result : CheckLocal(facts, Required())) {
    CHECK(result.check != "namespaces");
  }
}

}  // namespace
}  // namespace kvd::verbs::test
