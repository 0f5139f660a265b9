#include "common/transport/verbs/address.h"

#include <netdb.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"

namespace kvd::verbs {
namespace {

absl::Status Malformed(std::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", ToAbsl(text),
                   "' is not HOST:PORT, [IPV6]:PORT or [IPV6%ZONE]:PORT with a port up to 65535"));
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view text) {
  HostPort parsed;
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Malformed(text);
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (!host.empty() && host.front() == '[') {
    if (host.size() < 3 || host.back() != ']') return Malformed(text);
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return Malformed(text);  // an IPv6 address without brackets
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), parsed.port);
  if (port.empty() || error != std::errc{} || end != port.data() + port.size())
    return Malformed(text);
  if (host != "*") parsed.host = host;
  return parsed;
}

absl::StatusOr<std::vector<SocketAddress>> Resolve(const HostPort& host_port, bool passive) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const std::string port = std::to_string(host_port.port);
  const int error = getaddrinfo(host_port.host.empty() ? nullptr : host_port.host.c_str(),
                                port.c_str(), &hints, &found);
  if (error != 0) {
    const std::string message =
        absl::StrCat("looking up ", host_port.host, ": ", gai_strerror(error));
    return error == EAI_AGAIN ? absl::UnavailableError(message) : absl::NotFoundError(message);
  }
  std::vector<SocketAddress> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    SocketAddress address;
    address.length = at->ai_addrlen;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    addresses.push_back(address);
  }
  freeaddrinfo(found);
  if (addresses.empty())
    return absl::NotFoundError(absl::StrCat(host_port.host, " has no IP address"));
  return addresses;
}

std::array<uint8_t, 16> HostBytes(const sockaddr* address) {
  std::array<uint8_t, 16> bytes{};
  if (address->sa_family == AF_INET6) {
    const auto* at = reinterpret_cast<const sockaddr_in6*>(address);
    std::memcpy(bytes.data(), &at->sin6_addr, bytes.size());
  } else if (address->sa_family == AF_INET) {
    const auto* at = reinterpret_cast<const sockaddr_in*>(address);
    bytes[10] = bytes[11] = 0xff;
    std::memcpy(bytes.data() + 12, &at->sin_addr, sizeof(at->sin_addr));
  }
  return bytes;
}

std::string ToText(const sockaddr* address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const socklen_t length =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (getnameinfo(address, length, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  return address->sa_family == AF_INET6 ? absl::StrCat("[", host, "]:", port)
                                        : absl::StrCat(host, ":", port);
}

}  // namespace kvd::verbs
