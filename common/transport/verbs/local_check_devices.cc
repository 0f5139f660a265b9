// Is there RDMA, is there a device, may it be used?
#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/errno_status.h"
#include "common/transport/verbs/local_check_rows.h"

namespace kvd::verbs {
namespace {

std::vector<std::string> Names(const LocalFacts& facts) {
  std::vector<std::string> names;
  for (const DeviceFacts& device : facts.listing.devices) names.push_back(device.name);
  return names;
}

// Devices of the kernel that are not among `known`.
std::vector<std::string> Missing(const LocalFacts& facts, const std::vector<std::string>& known) {
  std::vector<std::string> missing;
  for (const std::string& device : facts.kernel_devices) {
    if (std::find(known.begin(), known.end(), device) == known.end()) missing.push_back(device);
  }
  return missing;
}

// "open /dev/infiniband/uverbs0: Permission denied (errno 13)".
std::string Message(int error_number, const char* call, const std::string& what) {
  return std::string(ErrnoStatus(error_number, call + (" " + what)).message());
}

std::string InstallProviders() {
  return "install the package ibverbs-providers (rdma-core on other distributions than Debian's)";
}

// Why the list is empty, or could not be made.
CheckResult NoDevice(const LocalFacts& facts, const LocalNeeds& needs) {
  CheckResult result;
  result.check = "device";
  result.outcome = Obstacle(needs);
  const char* fallback = needs.rdma_required ? "" : "; using shared memory";
  const std::string devices = absl::StrJoin(facts.kernel_devices, ", ");
  const int error = facts.listing.list_errno;
  if (!devices.empty() && facts.uverbs_devices.empty()) {
    result.found =
        absl::StrCat("the kernel has ", devices,
                     ", but programs cannot reach it: ib_uverbs is not loaded", fallback);
    result.remedy = "modprobe ib_uverbs; modprobe rdma_ucm";
  } else if (!devices.empty() && !facts.has_device_directory) {
    result.found = absl::StrCat(
        "the kernel has ", devices,
        ", but there is no /dev/infiniband here, by which programs reach it", fallback);
    result.remedy =
        "in a container: --device=/dev/infiniband; in a systemd unit: no PrivateDevices=yes";
  } else if (!devices.empty() && error == 0) {
    result.found = absl::StrCat("the kernel has ", devices,
                                ", but libibverbs has no provider for it", fallback);
    result.remedy = InstallProviders();
  } else if (error == ENOSYS) {
    result.found = absl::StrCat("no RDMA support in this kernel", fallback);
    result.remedy = absl::StrCat("to try Soft-RoCE: ", SoftRoceCommands(facts));
  } else if (error != 0) {
    result.found = absl::StrCat(ErrnoStatus(error, "ibv_get_device_list").message(), fallback);
    result.remedy = "in a container give it --device=/dev/infiniband and a readable /sys";
  } else if (facts.namespace_mode == NamespaceMode::kExclusive) {
    result.found = absl::StrCat(
        "no RDMA device in this network namespace, and the RDMA namespace mode is exclusive",
        fallback);
    result.remedy =
        "move one here: rdma dev set DEVICE netns NAME, or share all: rdma system set netns shared";
  } else {
    result.found =
        absl::StrCat("no RDMA device: no adapter, or its driver is not loaded", fallback);
    result.remedy = absl::StrCat(
        "load the adapter's driver, such as modprobe mlx5_ib, or try "
        "Soft-RoCE: ",
        SoftRoceCommands(facts));
  }
  return result;
}

CheckResult NamedDeviceAbsent(const LocalFacts& facts, const LocalNeeds& needs) {
  CheckResult result;
  result.check = absl::StrCat("device ", needs.device);
  result.outcome = CheckOutcome::kFailed;
  const std::vector<std::string> missing = Missing(facts, Names(facts));
  if (std::find(missing.begin(), missing.end(), needs.device) != missing.end()) {
    result.found =
        absl::StrCat("the kernel has ", needs.device, ", but libibverbs has no provider for it");
    result.remedy = InstallProviders();
    return result;
  }
  const std::vector<std::string> names = Names(facts);
  result.found = absl::StrCat("there is no RDMA device ", needs.device);
  result.remedy = names.empty() ? "kvcli devices shows those that are there"
                                : absl::StrCat("name one of ", absl::StrJoin(names, ", "));
  return result;
}

// What to do about a device file that could not be opened.
std::string FileRemedy(const FileAccess& file) {
  const bool is_cm = file.path.ends_with("rdma_cm");
  switch (file.error_number) {
    case ENOENT:
    case ENXIO:
    case ENODEV:
      return absl::StrCat("modprobe ", is_cm ? "rdma_ucm" : "ib_uverbs",
                          "; in a container: --device=/dev/infiniband; in a systemd unit: no "
                          "PrivateDevices=yes");
    case EPERM:
      return absl::StrCat(
          "allow it to this control group: --device=/dev/infiniband for a "
          "container, DeviceAllow=",
          file.path, " rw for a systemd unit");
    case EACCES:
      return absl::StrCat(
          "give this user the file's group, or a udev rule with MODE=\"0666\"; in "
          "a container: --device=/dev/infiniband");
    default:
      return "see dmesg for what the driver says";
  }
}

}  // namespace

std::string ExampleNetdev(const LocalFacts& facts) {
  for (const InterfaceAddress& address : facts.addresses) {
    if (!address.is_loopback) return address.netdev;
  }
  return "eth0";
}

std::string SoftRoceCommands(const LocalFacts& facts) {
  return absl::StrCat("modprobe rdma_rxe; rdma link add rxe0 type rxe netdev ",
                      ExampleNetdev(facts));
}

bool CheckDevices(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results) {
  if (facts.listing.devices.empty()) {
    results.push_back(NoDevice(facts, needs));
    return false;
  }
  const std::vector<std::string> names = Names(facts);
  const std::vector<std::string> missing = Missing(facts, names);
  if (!needs.device.empty() && std::find(names.begin(), names.end(), needs.device) == names.end()) {
    results.push_back(NamedDeviceAbsent(facts, needs));
    return false;
  }
  results.push_back({"device", CheckOutcome::kOk, absl::StrJoin(names, ", "), ""});
  if (needs.device.empty() && !missing.empty()) {
    results.push_back({"provider", CheckOutcome::kWarning,
                       absl::StrCat("the kernel also has ", absl::StrJoin(missing, ", "),
                                    ", for which libibverbs has no provider"),
                       InstallProviders()});
  }
  return true;
}

void CheckDeviceFiles(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results) {
  std::vector<std::string> opened;
  for (const FileAccess& file : facts.device_files) {
    const bool of_other_device = std::any_of(
        facts.listing.devices.begin(), facts.listing.devices.end(), [&](const DeviceFacts& device) {
          return device.uverbs_path == file.path && !IsConsidered(device, needs);
        });
    if (of_other_device) continue;
    if (file.error_number == 0) {
      opened.push_back(file.path);
      continue;
    }
    results.push_back({"permission", Obstacle(needs), Message(file.error_number, "open", file.path),
                       FileRemedy(file)});
  }
  if (!opened.empty()) {
    results.push_back({"permission", CheckOutcome::kOk,
                       absl::StrCat("may open ", absl::StrJoin(opened, ", ")), ""});
  }
  // The files can be opened, and the device still cannot.
  for (const DeviceFacts& device : facts.listing.devices) {
    const bool told = std::any_of(
        facts.device_files.begin(), facts.device_files.end(), [&](const FileAccess& file) {
          return file.path == device.uverbs_path && file.error_number != 0;
        });
    if (device.open_errno == 0 || told || !IsConsidered(device, needs)) continue;
    results.push_back({absl::StrCat("device ", device.name), Obstacle(needs),
                       Message(device.open_errno, "ibv_open_device", device.name),
                       device.open_errno == ENOMEM
                           ? "raise RLIMIT_MEMLOCK: ulimit -l unlimited, or LimitMEMLOCK=infinity"
                           : "see dmesg for what the driver says"});
  }
}

}  // namespace kvd::verbs
