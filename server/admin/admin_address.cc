#include "server/admin/admin_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/string_view.h"

namespace kvd {
namespace {

constexpr int kBacklog = 64;

bool ParsePort(std::string_view text, uint16_t& port) {
  uint32_t number = 0;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  if (!digits || !absl::SimpleAtoi(ToAbsl(text), &number) || number > 65535) return false;
  port = static_cast<uint16_t>(number);
  return true;
}

bool SetV4(const std::string& host, uint16_t port, AdminAddress& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &to.sin_addr) != 1) return false;
  std::memcpy(&address.storage, &to, sizeof(to));
  address.length = sizeof(to);
  return true;
}

bool SetV6(const std::string& host, uint16_t port, AdminAddress& address) {
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(port);
  if (inet_pton(AF_INET6, host.c_str(), &to.sin6_addr) != 1) return false;
  std::memcpy(&address.storage, &to, sizeof(to));
  address.length = sizeof(to);
  return true;
}

}  // namespace

bool AdminAddress::IsLoopback() const {
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

uint16_t AdminAddress::port() const {
  return ntohs(storage.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in*>(&storage)->sin_port
                   : reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
}

std::string AdminAddress::ToText() const {
  char host[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
    return absl::StrCat(host, ":", port());
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
  inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
  return absl::StrCat("[", host, "]:", port());
}

absl::StatusOr<AdminAddress> ParseAdminAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  std::string host(colon == text.npos ? "" : text.substr(0, colon));
  uint16_t port = 0;
  AdminAddress address;
  if (ParsePort(colon == text.npos ? text : text.substr(colon + 1), port)) {
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
      if (SetV6(host.substr(1, host.size() - 2), port, address)) return address;
    } else {
      if (host.empty() || host == "localhost") host = "127.0.0.1";
      if (host == "*") host = "0.0.0.0";
      if (SetV4(host, port, address)) return address;
    }
  }
  return absl::InvalidArgumentError(
      "[HOST:]PORT such as 7712, 127.0.0.1:7712 or [::1]:7712; HOST is an address");
}

absl::StatusOr<AdminListener> ListenAt(const AdminAddress& address) {
  const std::string shown = address.ToText();
  AdminListener listener;
  listener.address = address;
  const int family = address.storage.ss_family;
  listener.fd.Reset(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener.fd.valid()) return ErrnoStatus(errno, absl::StrCat("socket for ", shown));
  const int on = 1;
  setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  auto* const at = reinterpret_cast<sockaddr*>(&listener.address.storage);
  if (bind(listener.fd.get(), at, address.length) != 0 ||
      listen(listener.fd.get(), kBacklog) != 0) {
    if (errno == EADDRINUSE) {
      return absl::AlreadyExistsError(
          absl::StrCat(shown, " is in use; choose another port, or see who has it: ss -ltnp"));
    }
    if (errno == EADDRNOTAVAIL) {
      return absl::UnavailableError(absl::StrCat(shown, " is no address of this machine"));
    }
    return ErrnoStatus(errno, absl::StrCat("listening at ", shown));
  }
  socklen_t length = address.length;
  getsockname(listener.fd.get(), at, &length);
  return listener;
}

}  // namespace kvd
