#include "server/kvd_plan.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/machine_memory.h"
#include "common/base/status_macros.h"
#include "common/base/string_view.h"
#include "common/base/units.h"
#include "common/base/user_namespace.h"
#include "common/transport/shm/unix_socket.h"
#include "common/transport/verbs/address.h"
#include "server/store/numa_memory.h"
#include "server/store/region.h"
#include "server/store/region_memory.h"

namespace kvd {
namespace {

// A session's socket, the buffers that a client registers (few, usually one), and some for kvd
// itself.
constexpr uint64_t kDescriptorsPerClient = 3;
constexpr uint64_t kDescriptorsOfKvd = 64;

std::string Bytes(uint64_t bytes) { return FormatBytes(bytes); }

absl::Status Lacking(absl::Status status) {
  return status.ok() ? status : absl::ResourceExhaustedError(status.message());
}

// `facts`: counts what a kvd that is to end gives back; so does this.
absl::Status CheckHugepagesFor(const KvdPlan& plan, const verbs::LocalFacts& facts, int node) {
  if (plan.running.has_value() && facts.hugepages_free >= plan.options.memory_bytes / (2 * kMiB))
    return absl::OkStatus();
  return Lacking(CheckHugepages(plan.options.memory_bytes, node));
}

absl::Status CheckMemory(const KvdPlan& plan, const verbs::LocalFacts& facts) {
  const KvdOptions& options = plan.options;
  const int node = plan.placement.strict ? plan.placement.node : -1;
  const uint64_t minimum = Region::MinimumBytes(options.pollers);
  if (options.memory_bytes < minimum) {
    const std::string meant =
        options.memory_is_bare_number && options.memory_bytes >= minimum / kMiB
            ? absl::StrCat("; did you mean --memory=", options.memory_bytes, "m?")
            : "";
    return absl::InvalidArgumentError(
        absl::StrCat("--memory=", options.memory_bytes, " is less than the minimum of ", minimum,
                     " bytes (", Bytes(minimum), ") for ", options.pollers,
                     options.pollers == 1 ? " poller" : " pollers", meant));
  }
  const MachineMemory& machine = facts.memory;
  // Hugepages of the kernel's pool are no part of what is available otherwise.
  const bool in_hugepages =
      options.hugepages != HugepagePolicy::kOff && CheckHugepagesFor(plan, facts, node).ok();
  if (!in_hugepages && node >= 0 && !plan.running.has_value())
    KVD_RETURN_IF_ERROR(Lacking(CheckNodeMemory(options.memory_bytes, node)));
  if (!in_hugepages && machine.total_bytes != 0 && options.memory_bytes > machine.usable_bytes()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("--memory=", options.memory_bytes, " (", Bytes(options.memory_bytes),
                     ") is more than this machine can give; ", machine.Describe(),
                     plan.running.has_value() ? ", once the kvd that runs has ended" : ""));
  }
  // What the start would find out a little later.
  return options.hugepages == HugepagePolicy::kRequire ? CheckHugepagesFor(plan, facts, node)
                                                       : absl::OkStatus();
}

// What the kvd that runs will have given back by the time that this one starts.
void CountAsThere(const RunningKvd& running, verbs::LocalFacts& facts) {
  facts.memory.available_bytes += running.resident_bytes;
  facts.memory.limit_used_bytes -= std::min(facts.memory.limit_used_bytes, running.resident_bytes);
  facts.hugepages_free += running.hugepages_bytes / (2 * kMiB);
}

absl::Status SettleMaxValue(KvdOptions& options) {
  const uint64_t largest = LargestValue(options.memory_bytes);
  if (options.max_value_bytes <= largest) return absl::OkStatus();
  if (options.max_value_given) {
    return absl::InvalidArgumentError(
        absl::StrCat("--max_value=", options.max_value_bytes, " (", Bytes(options.max_value_bytes),
                     ") is more than a quarter of --memory=", Bytes(options.memory_bytes),
                     "; the most is ", largest, " bytes, or give more --memory"));
  }
  options.max_value_bytes = largest;
  return absl::OkStatus();
}

void WarnOfDescriptors(const KvdOptions& options, std::vector<std::string>& warnings) {
  const uint64_t needed = options.max_clients * kDescriptorsPerClient + kDescriptorsOfKvd;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < needed) {
    warnings.push_back(absl::StrCat("--max_clients=", options.max_clients, " needs about ", needed,
                                    " descriptors and the hard limit is ", limit.rlim_max,
                                    ": further clients will be refused (ulimit -n, or LimitNOFILE= "
                                    "of systemd)"));
  }
}

// Others of that number may be anybody, so whoever has it is nobody to kvd.
void WarnOfNobody(std::vector<std::string>& warnings) {
  const UserNamespace here = UserNamespace::OfThisProcess();
  if (here.users.Vouched(geteuid()) != kNoId) return;
  warnings.push_back(absl::StrCat(
      "kvd runs as user ", geteuid(),
      " in a user namespace, as which it sees all users of outside too: over shared memory only "
      "root of this namespace administers it, no rule holds for that user, and no key; run it as "
      "another user of the namespace"));
}

verbs::HugepageNeed NeedOf(HugepagePolicy policy) {
  switch (policy) {
    case HugepagePolicy::kOff:
      return verbs::HugepageNeed::kNone;
    case HugepagePolicy::kPrefer:
      return verbs::HugepageNeed::kPreferred;
    case HugepagePolicy::kRequire:
      break;
  }
  return verbs::HugepageNeed::kRequired;
}

// The device that --listen will be served by, as far as that is known beforehand; null: it is not.
const verbs::DeviceFacts* DeviceOf(const KvdOptions& options, const verbs::LocalFacts& facts) {
  if (options.listen.empty()) return nullptr;
  const absl::StatusOr<verbs::HostPort> listen = verbs::ParseHostPort(options.listen);
  const std::string address = listen.ok() ? listen->host.substr(0, listen->host.find('%')) : "";
  for (const verbs::DeviceFacts& device : facts.listing.devices) {
    if (device.name == options.device) return &device;
    if (!options.device.empty()) continue;
    for (const verbs::PortFacts& port : device.ports) {
      for (const verbs::GidFacts& gid : port.gids) {
        if (gid.address == address) return &device;
      }
    }
  }
  return nullptr;
}

absl::Status PlaceKvd(KvdPlan& plan, const verbs::LocalFacts& machine) {
  const KvdOptions& options = plan.options;
  NumaFacts facts = GatherNumaFacts();
  if (const verbs::DeviceFacts* const device = DeviceOf(options, machine); device != nullptr) {
    facts.device = device->name;
    facts.device_node = device->numa_node;
  }
  KVD_ASSIGN_OR_RETURN(plan.placement, Place({.node = options.numa_node,
                                              .poller_cpus = options.poller_cpus,
                                              .pollers = options.pollers,
                                              .memory_bytes = options.memory_bytes},
                                             facts));
  plan.warnings.insert(plan.warnings.end(), plan.placement.warnings.begin(),
                       plan.placement.warnings.end());
  return absl::OkStatus();
}

// What has to be an address of an RDMA port. Empty: a name, which is looked up when kvd listens, or
// a loopback address.
std::string AddressToListen(const std::string& listen) {
  const absl::StatusOr<verbs::HostPort> parsed = verbs::ParseHostPort(listen);
  if (!parsed.ok()) return "";
  const std::string address = parsed->host.substr(0, parsed->host.find('%'));
  in6_addr bytes{};
  const bool numeric = inet_pton(AF_INET, address.c_str(), &bytes) == 1 ||
                       inet_pton(AF_INET6, address.c_str(), &bytes) == 1;
  const bool loopback = address == "::1" || address.rfind("127.", 0) == 0;
  return numeric && !loopback ? parsed->host : "";
}

void CheckMachine(KvdPlan& plan, const verbs::LocalFacts& facts) {
  verbs::LocalNeeds needs;
  needs.memory_bytes = plan.options.memory_bytes;
  needs.buffers_bytes = verbs::kServerBuffersBytes;
  needs.hugepages = NeedOf(plan.options.hugepages);
  needs.numa_node = plan.placement.strict ? plan.placement.node : -1;
  const bool listening = !plan.options.listen.empty();
  needs.rdma_required = listening;
  needs.device = plan.options.device;
  if (listening) needs.address = AddressToListen(plan.options.listen);
  plan.checks = verbs::CheckLocal(facts, needs);
  plan.rdma_note = listening ? "" : verbs::WhyRdmaIsNotUp(facts, needs, listening);
  if (!listening) return;
  if (const std::string why = verbs::WhyNoDevice(facts, needs); !why.empty()) {
    plan.cannot_listen = absl::StrCat("--listen=", plan.options.listen, ": ", why,
                                      "; or leave --listen out: shared memory needs no device");
  }
}

absl::Status CheckListen(const KvdOptions& options) {
  const absl::StatusOr<verbs::HostPort> listen = verbs::ParseHostPort(options.listen);
  if (!listen.ok())
    return absl::InvalidArgumentError(absl::StrCat("--listen: ", listen.status().message()));
  const std::string& host = listen->host;
  const bool loopback = host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
  if (loopback || options.insecure || !options.keys_path.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("--listen=", options.listen,
                   " would let everybody who reaches that address read and write; give "
                   "--keys=PATH (docs/security.md), or --insecure if the network is trusted"));
}

absl::Status LoadKeys(KvdPlan& plan) {
  if (plan.options.keys_path.empty()) return absl::OkStatus();
  absl::StatusOr<AccessRules> rules = LoadAccessRules(plan.options.keys_path);
  if (!rules.ok()) {
    return absl::Status(rules.status().code(), absl::StrCat("--keys: ", rules.status().message()));
  }
  if (rules->keys.empty() && plan.options.shm_path.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--keys: ", plan.options.keys_path,
                     " has no line 'key ...', so nobody could connect over RDMA"));
  }
  plan.access = std::make_shared<const AccessRules>(*std::move(rules));
  return absl::OkStatus();
}

absl::Status CheckAdmin(KvdPlan& plan) {
  const KvdOptions& options = plan.options;
  if (options.admin.empty()) return absl::OkStatus();
  KVD_ASSIGN_OR_RETURN(plan.admin, ParseAdminAddress(options.admin));
  if (plan.admin->IsLoopback() || options.insecure) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "--admin=", options.admin,
      " would show statistics and sessions to everybody who reaches that address: the admin "
      "endpoint asks nobody who they are; give --admin=PORT for this host alone, or --insecure if "
      "the network is trusted"));
}

absl::Status CheckTransports(const KvdOptions& options) {
  if (options.shm_path.empty() && options.listen.empty()) {
    return absl::InvalidArgumentError(
        "--shm= without --listen leaves no transport on which kvd could be reached");
  }
  if (!options.shm_path.empty()) {
    if (auto address = MakeUnixAddress(options.shm_path); !address.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--shm: ", address.status().message()));
    }
  }
  if (options.listen.empty()) {
    if (!options.device.empty())
      return absl::InvalidArgumentError("--device is for RDMA: give --listen=ADDRESS:PORT too");
    return absl::OkStatus();
  }
  return CheckListen(options);
}

}  // namespace

uint64_t LargestValue(uint64_t memory_bytes) {
  return std::min<uint64_t>(memory_bytes / 4, uint64_t{1} << 39);
}

absl::StatusOr<KvdPlan> MakeKvdPlan(const KvdOptions& options) {
  KvdPlan plan;
  plan.options = options;
  KVD_RETURN_IF_ERROR(CheckTransports(options));
  KVD_RETURN_IF_ERROR(LoadKeys(plan));
  KVD_RETURN_IF_ERROR(CheckAdmin(plan));
  verbs::LocalFacts facts = verbs::GatherLocalFacts();
  if (options.check && !options.shm_path.empty()) {
    plan.running = FindRunningKvd(options.shm_path);
    if (plan.running.has_value()) CountAsThere(*plan.running, facts);
  }
  KVD_RETURN_IF_ERROR(PlaceKvd(plan, facts));
  KVD_RETURN_IF_ERROR(CheckMemory(plan, facts));
  KVD_RETURN_IF_ERROR(SettleMaxValue(plan.options));
  const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  if (options.pollers > cores) {
    plan.warnings.push_back(absl::StrCat("--pollers=", options.pollers, " on ", cores,
                                         " cores: pollers will wait for each other"));
  }
  if (options.poll == PollMode::kBusy && options.pollers >= cores) {
    plan.warnings.push_back("--poll=busy with a poller on every core leaves none for clients");
  }
  if (options.poll == PollMode::kAdaptive && cores == 1) {
    plan.options.poll_spin_us = 0;  // nobody could make progress meanwhile
  }
  WarnOfDescriptors(options, plan.warnings);
  WarnOfNobody(plan.warnings);
  CheckMachine(plan, facts);
  return plan;
}

namespace {

std::string DescribeAccess(const KvdPlan& plan) {
  if (plan.access == nullptr) return "whoever reaches it";
  return absl::StrCat(plan.access->keys.size(), " keys, ", plan.access->peers.size(),
                      " rules for users and groups of this host");
}

}  // namespace

std::string DescribePlan(const KvdPlan& plan) {
  const KvdOptions& o = plan.options;
  std::string text = absl::StrCat(
      "memory: ", Bytes(o.memory_bytes), ", hugepages ", NameOf(o.hugepages), "\n",
      "shared memory: ", o.shm_path.empty() ? "none" : o.shm_path, "\n", "RDMA: ",
      o.listen.empty()
          ? "none"
          : absl::StrCat(o.listen, ", device ", o.device.empty() ? "by address" : o.device,
                         ", connect ", NameOf(o.connect)),
      "\n", "pollers: ", o.pollers, ", ", NameOf(o.poll),
      o.poll == PollMode::kAdaptive ? absl::StrCat(", spinning ", o.poll_spin_us, " us") : "", "\n",
      "NUMA: ", Describe(plan.placement), "\n", "admits: ", DescribeAccess(plan), "\n",
      "largest value: ", Bytes(o.max_value_bytes), "\n",
      "when full: ", o.evict == EvictPolicy::kLru ? "evicts (lru)" : "refuses writes", "\n",
      "clients: at most ", o.max_clients, "\n", "bucket: ", Bytes(o.bucket_bytes), "\n",
      "admin endpoint: ", plan.admin.has_value() ? plan.admin->ToText() : "none", "\n");
  if (plan.running.has_value()) {
    absl::StrAppend(&text, "running: a kvd (pid ", plan.running->pid, ") serves ", o.shm_path,
                    "; this is for when it has ended\n");
  }
  for (const std::string& warning : plan.warnings)
    absl::StrAppend(&text, "warning: ", warning, "\n");
  for (const verbs::CheckResult& result : plan.checks) {
    absl::StrAppend(&text, ToAbsl(NameOf(result.outcome)), ": ", result.check, ": ", TextOf(result),
                    "\n");
  }
  return text;
}

}  // namespace kvd
