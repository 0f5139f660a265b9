// Do the ports carry anything, and is the address one of theirs?
#include <arpa/inet.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/string_view.h"
#include "common/transport/verbs/local_check_rows.h"

namespace kvd::verbs {
namespace {

std::string PortName(const DeviceFacts& device, const PortFacts& port) {
  return absl::StrCat(device.name, "/", port.number);
}

// "RoCE, va, MTU 1024 of 4096, 25 Gb/s".
std::string Describe(const PortFacts& port) {
  std::string text(NameOf(port.fabric));
  if (!port.netdev.empty()) absl::StrAppend(&text, ", ", port.netdev);
  if (port.active_mtu_bytes != 0) {
    absl::StrAppend(&text, ", MTU ", port.active_mtu_bytes);
    if (port.active_mtu_bytes < port.max_mtu_bytes) {
      absl::StrAppend(&text, " of ", port.max_mtu_bytes);
    }
  }
  if (port.speed_gbps > 0) absl::StrAppend(&text, ", ", port.speed_gbps, " Gb/s");
  return text;
}

std::string InactiveRemedy(const PortFacts& port) {
  const bool link_is_up = port.state == PortState::kInit || port.state == PortState::kArmed;
  if (port.fabric == Fabric::kInfiniBand) {
    return link_is_up ? "the link is up but no subnet manager has seen it: start opensm on a host "
                        "or the switch's own"
                      : "connect the cable, or enable the port on the switch";
  }
  const std::string netdev = port.netdev.empty() ? "NETDEV" : port.netdev;
  return absl::StrCat("ip link set ", netdev, " up, and see with ip link show ", netdev,
                      " whether it has a carrier; if not, connect the cable");
}

CheckResult CheckPort(const DeviceFacts& device, const PortFacts& port, CheckOutcome if_inactive) {
  CheckResult result;
  result.check = absl::StrCat("port ", PortName(device, port));
  result.found = absl::StrCat("is ", ToAbsl(NameOf(port.state)));
  if (port.active()) {
    absl::StrAppend(&result.found, ", ", Describe(port));
    return result;
  }
  if (!port.physical_state.empty()) absl::StrAppend(&result.found, " (", port.physical_state, ")");
  absl::StrAppend(&result.found, ", ", Describe(port));
  result.outcome = if_inactive;
  result.remedy = InactiveRemedy(port);
  return result;
}

bool UsesNetdev(const PortFacts& port, std::string_view netdev) {
  return !netdev.empty() &&
         (port.netdev == netdev ||
          std::any_of(port.gids.begin(), port.gids.end(),
                      [&](const GidFacts& gid) { return gid.netdev == netdev; }));
}

bool IsLinkLocalText(std::string_view address) {
  in6_addr bytes = {};
  return inet_pton(AF_INET6, std::string(address).c_str(), &bytes) == 1 &&
         IN6_IS_ADDR_LINKLOCAL(&bytes);
}

// Calls `visit(device, port, address)` for each address of a port's network device.
template <typename Visitor>
void ForEachAddress(const LocalFacts& facts, const LocalNeeds& needs, const Visitor& visit) {
  for (const DeviceFacts& device : facts.listing.devices) {
    if (!IsConsidered(device, needs)) continue;
    for (const PortFacts& port : device.ports) {
      for (const InterfaceAddress& address : facts.addresses) {
        if (UsesNetdev(port, address.netdev)) visit(device, port, address);
      }
    }
  }
}

std::vector<std::string> Addresses(const LocalFacts& facts, const LocalNeeds& needs) {
  std::vector<std::string> addresses;
  ForEachAddress(
      facts, needs,
      [&](const DeviceFacts& device, const PortFacts& port, const InterfaceAddress& address) {
        if (!port.active() || IsLinkLocalText(address.address)) return;
        addresses.push_back(absl::StrCat(address.address, " (", device.name, ")"));
      });
  return addresses;
}

// The same address in the form in which addresses are compared; empty if it is none.
std::string Normalized(const std::string& address) {
  char text[INET6_ADDRSTRLEN] = {};
  for (const int family : {AF_INET, AF_INET6}) {
    in6_addr bytes = {};
    if (inet_pton(family, address.c_str(), &bytes) == 1) {
      return inet_ntop(family, &bytes, text, sizeof(text));
    }
  }
  return "";
}

// A port without any address that could be reached.
void CheckPortAddresses(const LocalFacts& facts, const DeviceFacts& device, const PortFacts& port,
                        CheckResults& results) {
  CheckResult result;
  result.check = absl::StrCat("address of ", PortName(device, port));
  result.outcome = CheckOutcome::kWarning;
  if (port.netdev.empty()) {
    result.found = port.fabric == Fabric::kInfiniBand
                       ? "no network device (IPoIB) belongs to it, by which connections are made"
                       : "its network device is not in this network namespace";
    result.remedy =
        port.fabric == Fabric::kInfiniBand
            ? "modprobe ib_ipoib and give its device an address, or connect with --connect=tcp"
            : "run in the host's network namespace, or move the network device here";
    results.push_back(result);
    return;
  }
  const bool has_address = std::any_of(
      facts.addresses.begin(), facts.addresses.end(), [&](const InterfaceAddress& address) {
        return UsesNetdev(port, address.netdev) && !IsLinkLocalText(address.address);
      });
  if (has_address && !port.gids.empty()) return;
  result.found = port.gids.empty() ? absl::StrCat("it has no GID for an address of ", port.netdev)
                                   : absl::StrCat(port.netdev, " has only link-local addresses");
  result.remedy = absl::StrCat("ip addr add ADDRESS/BITS dev ", port.netdev,
                               port.gids.empty() ? "; ip link set " + port.netdev + " up" : "");
  results.push_back(result);
}

// The address that was asked for.
CheckResult CheckNamedAddress(const LocalFacts& facts, const LocalNeeds& needs) {
  CheckResult result;
  result.check = absl::StrCat("address ", needs.address);
  result.outcome = CheckOutcome::kFailed;
  const size_t percent = needs.address.find('%');
  const std::string zone = percent == std::string::npos ? "" : needs.address.substr(percent + 1);
  const std::string address = Normalized(needs.address.substr(0, percent));
  const std::vector<std::string> usable = Addresses(facts, needs);
  const std::string instead = usable.empty()
                                  ? "give an RDMA port's network device an address: ip addr add"
                                  : absl::StrCat("use one of ", absl::StrJoin(usable, ", "));
  std::string user;
  ForEachAddress(
      facts, needs,
      [&](const DeviceFacts& device, const PortFacts& port, const InterfaceAddress& candidate) {
        const bool same = candidate.address == address;
        if (!same || (!zone.empty() && candidate.netdev != zone)) return;
        user = absl::StrCat(PortName(device, port), ", ", candidate.netdev);
      });
  if (!user.empty()) {
    result.outcome = CheckOutcome::kOk;
    result.found = absl::StrCat("is on ", user);
    return result;
  }
  if (address.empty()) {
    result.found = "is no IPv4 or IPv6 address";
    result.remedy = instead;
    return result;
  }
  const auto elsewhere =
      std::find_if(facts.addresses.begin(), facts.addresses.end(), [&](const auto& candidate) {
        return candidate.address == address && (zone.empty() || candidate.netdev == zone);
      });
  if (elsewhere == facts.addresses.end()) {
    result.found = "no interface here has it";
    result.remedy = instead;
    return result;
  }
  result.found =
      absl::StrCat("is on ", elsewhere->netdev, ", which ",
                   needs.device.empty() ? "no RDMA device" : "no port of ", needs.device, " uses");
  if (facts.namespace_mode == NamespaceMode::kExclusive) {
    absl::StrAppend(&result.found, " in this namespace (RDMA namespace mode: exclusive)");
  }
  result.remedy = instead;
  if (needs.device.empty() && !elsewhere->is_loopback) {
    absl::StrAppend(&result.remedy, ", or rdma link add rxe0 type rxe netdev ", elsewhere->netdev);
  }
  return result;
}

bool IsWildcard(const std::string& address) {
  return address.empty() || address == "0.0.0.0" || address == "::" || address == "*";
}

}  // namespace

void CheckPorts(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results) {
  bool any_active = false;
  for (const DeviceFacts& device : facts.listing.devices) {
    if (!IsConsidered(device, needs)) continue;
    for (const PortFacts& port : device.ports) any_active |= port.active();
  }
  // A spare port may be unconnected.
  const CheckOutcome if_inactive = any_active ? CheckOutcome::kWarning : Obstacle(needs);
  for (const DeviceFacts& device : facts.listing.devices) {
    if (!IsConsidered(device, needs)) continue;
    for (const PortFacts& port : device.ports) {
      results.push_back(CheckPort(device, port, if_inactive));
    }
  }
}

void CheckAddress(const LocalFacts& facts, const LocalNeeds& needs, CheckResults& results) {
  if (!IsWildcard(needs.address)) {
    results.push_back(CheckNamedAddress(facts, needs));
    return;
  }
  for (const DeviceFacts& device : facts.listing.devices) {
    if (!IsConsidered(device, needs)) continue;
    for (const PortFacts& port : device.ports) {
      if (port.active()) CheckPortAddresses(facts, device, port, results);
    }
  }
  if (const std::vector<std::string> usable = Addresses(facts, needs); !usable.empty()) {
    results.push_back({"address", CheckOutcome::kOk, absl::StrJoin(usable, ", "), ""});
  }
}

void CheckNamespace(const LocalFacts& facts, CheckResults& results) {
  if (facts.namespace_mode == NamespaceMode::kUnknown) return;
  results.push_back({"namespaces", CheckOutcome::kOk,
                     facts.namespace_mode == NamespaceMode::kShared
                         ? "RDMA devices are shared among network namespaces"
                         : "exclusive: only RDMA devices of this network namespace can be used",
                     ""});
}

std::vector<std::string> RdmaAddresses(const LocalFacts& facts) { return Addresses(facts, {}); }

}  // namespace kvd::verbs
