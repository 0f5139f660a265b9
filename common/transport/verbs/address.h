// Addresses as users write them: "HOST:PORT", "[IPV6]:PORT", "[fe80::1%eth0]:PORT", "*:PORT" or
// ":PORT" for all.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace kvd::verbs {

struct HostPort {
  std::string host;  // empty: all addresses
  uint16_t port = 0;
};

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }
};

// InvalidArgument names the text and the forms there are.
absl::StatusOr<HostPort> ParseHostPort(std::string_view text);

// All addresses of a host, best first. `passive`: to listen on. May block on a name server.
// NotFound, Unavailable.
absl::StatusOr<std::vector<SocketAddress>> Resolve(const HostPort& host_port, bool passive);

// Of an IPv6 address, or an IPv4 one mapped into IPv6; zeroes of anything else.
std::array<uint8_t, 16> HostBytes(const sockaddr* address);

// "10.0.0.1:7711", "[fe80::1%eth0]:7711".
std::string ToText(const sockaddr* address);

}  // namespace kvd::verbs
