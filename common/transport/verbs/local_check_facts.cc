#include "common/transport/verbs/local_check_facts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "common/base/unique_fd.h"
#include "common/transport/verbs/device_sysfs.h"
#include "common/transport/verbs/local_check_kernel.h"

namespace kvd::verbs {
namespace {

constexpr const char* kDeviceDirectory = "/dev/infiniband";
constexpr const char* kRdmaCmPath = "/dev/infiniband/rdma_cm";

// Only opening tells: a container's device control groups forbid no more than that.
FileAccess TryOpen(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  return {path, fd.valid() ? 0 : errno};
}

std::vector<InterfaceAddress> InterfaceAddresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<InterfaceAddress> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    const void* bytes = nullptr;
    if (family == AF_INET) bytes = &reinterpret_cast<sockaddr_in*>(entry->ifa_addr)->sin_addr;
    if (family == AF_INET6) bytes = &reinterpret_cast<sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
    char text[INET6_ADDRSTRLEN] = {};
    if (bytes == nullptr || inet_ntop(family, bytes, text, sizeof(text)) == nullptr) continue;
    addresses.push_back({entry->ifa_name, text, (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return addresses;
}

}  // namespace

LocalFacts GatherLocalFacts() {
  LocalFacts facts;
  facts.listing = ListDevices();
  facts.kernel_devices = KernelDevices();
  facts.uverbs_devices = UverbsDevices();
  for (const DeviceFacts& device : facts.listing.devices) {
    facts.device_files.push_back(TryOpen(device.uverbs_path));
  }
  if (!facts.listing.devices.empty()) facts.device_files.push_back(TryOpen(kRdmaCmPath));
  facts.has_device_directory = ::access(kDeviceDirectory, F_OK) == 0;
  facts.namespace_mode = ReadNamespaceMode();
  facts.addresses = InterfaceAddresses();
  facts.memory = ReadMachineMemory();
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_max != RLIM_INFINITY) {
    facts.memlock_limit_bytes = limit.rlim_max;
  }
  facts.memlock_unlimited = MayLockWithoutLimit();
  ReadHugepages(facts);
  return facts;
}

}  // namespace kvd::verbs
