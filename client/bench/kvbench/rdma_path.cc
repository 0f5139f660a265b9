#include "client/bench/kvbench/rdma_path.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "client/cli/failure.h"
#include "common/base/unique_fd.h"
#include "common/transport/verbs/device_info.h"

namespace kvd::bench {
namespace {

struct HostAndPort {
  std::string host;
  std::string port;
};

HostAndPort Split(std::string text) {
  text = text.substr(0, text.find(','));
  if (text.starts_with("rdma:")) text.erase(0, 5);
  constexpr const char* kPortDefault = "7711";
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    const std::string port = end + 2 < text.size() ? text.substr(end + 2) : kPortDefault;
    return {text.substr(1, end - 1), port};
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {text, kPortDefault};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::string Numeric(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  return text.data();
}

// The address that packets to there leave from: a datagram socket that is connected says so, and
// sends nothing.
std::string AddressTowards(const addrinfo& there) {
  const UniqueFd socket(::socket(there.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage here{};
  socklen_t size = sizeof(here);
  if (::connect(socket.get(), there.ai_addr, there.ai_addrlen) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &size) != 0) {
    return "";
  }
  return Numeric(reinterpret_cast<sockaddr*>(&here), size);
}

}  // namespace

std::optional<RdmaEnd> EndOf(const std::vector<verbs::DeviceFacts>& devices,
                             const std::string& address, const std::string& device) {
  std::optional<RdmaEnd> found;
  for (const verbs::DeviceFacts& facts : devices) {
    if (!device.empty() && facts.name != device) continue;
    for (const verbs::PortFacts& port : facts.ports) {
      for (const verbs::GidFacts& gid : port.gids) {
        if (!address.empty() && gid.address != address) continue;
        if (address.empty() && (gid.is_link_local || found.has_value())) continue;
        found = RdmaEnd{facts.name, port.number, gid.index, port.active_mtu_bytes, gid.address};
        if (gid.type == verbs::GidType::kRoceV2 && !address.empty()) return found;
      }
    }
  }
  return found;
}

std::optional<RdmaPath> RdmaPathTo(const std::string& target, const std::string& device) {
  if (!cli::IsRdmaTarget(target)) return std::nullopt;
  const HostAndPort place = Split(target);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(place.host.c_str(), place.port.c_str(), &hints, &list) != 0) return RdmaPath{};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  const std::vector<verbs::DeviceFacts> devices = verbs::ListDevices().devices;
  RdmaPath path;
  path.host = Numeric(list->ai_addr, list->ai_addrlen);
  // A device that the user named need not have the route's address.
  path.here = EndOf(devices, AddressTowards(*list), device);
  if (!path.here.has_value() && !device.empty()) path.here = EndOf(devices, "", device);
  path.server = EndOf(devices, path.host, "");
  return path;
}

}  // namespace kvd::bench
