// Where the admin endpoint listens.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace kvd {

struct AdminAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  bool IsLoopback() const;
  uint16_t port() const;
  // "127.0.0.1:7712", "[::1]:7712".
  std::string ToText() const;
};

// "[HOST:]PORT": HOST is an IPv4 address, an IPv6 address in brackets, "localhost", or "*" for all;
// without it (also ":PORT") it is 127.0.0.1. Port 0: any that is free. InvalidArgument.
absl::StatusOr<AdminAddress> ParseAdminAddress(std::string_view text);

// A socket that listens there and does not block. AlreadyExists: the address is taken.
// Unavailable: it is none of this machine.
struct AdminListener {
  UniqueFd fd;
  AdminAddress address;  // with the port that it got
};
absl::StatusOr<AdminListener> ListenAt(const AdminAddress& address);

}  // namespace kvd
