#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/transport/verbs/address.h"
#include "common/transport/verbs/client_path.h"
#include "common/transport/verbs/gids.h"
#include "common/transport/verbs/tcp_exchange.h"

namespace kvd::verbs {
namespace {

// Waits for the socket; DeadlineExceeded.
absl::Status Await(const UniqueFd& socket, short events, const std::string& where,
                   int64_t deadline_ns) {
  const int64_t left_ns = deadline_ns - RealClock::Get().NowMonotonicNs();
  if (left_ns > 0) {
    const timespec timeout{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    pollfd fd{socket.get(), events, 0};
    if (ppoll(&fd, 1, &timeout, nullptr) != 0) return absl::OkStatus();
  }
  return absl::DeadlineExceededError(absl::StrCat("no answer of ", where, " by TCP in time"));
}

absl::StatusOr<UniqueFd> Dial(const SocketAddress& to, const std::string& where,
                              int64_t deadline_ns) {
  UniqueFd socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return ErrnoStatus("socket");
  if (connect(socket.get(), to.get(), to.length) != 0) {
    if (errno != EINPROGRESS)
      return absl::UnavailableError(ErrnoStatus(absl::StrCat("connecting to ", where)).message());
    KVD_RETURN_IF_ERROR(Await(socket, POLLOUT, where, deadline_ns));
    int error = 0;
    socklen_t length = sizeof(error);
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      return absl::UnavailableError(
          absl::StrCat(ErrnoStatus(error, absl::StrCat("connecting to ", where)).message(),
                       "; is kvd started with --listen and --connect=tcp?"));
    }
  }
  return socket;
}

absl::Status ReceiveAll(const UniqueFd& socket, std::span<std::byte> into, const std::string& where,
                        int64_t deadline_ns) {
  while (!into.empty()) {
    const ssize_t got = recv(socket.get(), into.data(), into.size(), 0);
    if (got > 0) {
      into = into.subspan(static_cast<size_t>(got));
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      return absl::UnavailableError(absl::StrCat(where, " ended the TCP connection"));
    } else {
      KVD_RETURN_IF_ERROR(Await(socket, POLLIN, where, deadline_ns));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> DeviceNames() {
  std::vector<std::string> names;
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  for (int i = 0; devices != nullptr && i < count; ++i)
    names.emplace_back(ibv_get_device_name(devices[i]));
  if (devices != nullptr) ibv_free_device_list(devices);
  return names;
}

// Of one family, ports aside.
bool SameHost(const SocketAddress& a, const SocketAddress& b) {
  if (a.family() == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a.get())->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b.get())->sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a.get())->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b.get())->sin6_addr,
                     sizeof(in6_addr)) == 0;
}

bool HasAddress(const RdmaContext& context, const SocketAddress& local) {
  const std::vector<SocketAddress> addresses = AddressesOf(context, local.family());
  return std::any_of(addresses.begin(), addresses.end(),
                     [&](const SocketAddress& address) { return SameHost(address, local); });
}

// The device to use, and its port: the named one; else the one with the address from which TCP
// reaches the server, or the first that is active.
absl::StatusOr<std::pair<std::string, uint8_t>> PickDevice(const std::string& named,
                                                           const SocketAddress& local) {
  absl::StatusOr<std::pair<std::string, uint8_t>> picked =
      absl::UnavailableError("there is no RDMA device");
  for (const std::string& name : named.empty() ? DeviceNames() : std::vector{named}) {
    const auto context = RdmaContext::Open(name);
    const auto port = context.ok() ? ActivePort(**context) : context.status();
    if (!port.ok()) {
      if (!picked.ok()) picked = port.status();
      continue;
    }
    const bool leads_there = HasAddress(**context, local);
    if (leads_there || !picked.ok()) picked = std::pair(name, *port);
    if (leads_there) break;
  }
  return picked;
}

absl::StatusOr<ClientPath> ExchangeWith(const SocketAddress& to, const VerbsTarget& target,
                                        const Hello& hello, int64_t deadline_ns) {
  const std::string where = ToText(to.get());
  KVD_ASSIGN_OR_RETURN(UniqueFd socket, Dial(to, where, deadline_ns));
  SocketAddress local;
  local.length = sizeof(local.storage);
  if (getsockname(socket.get(), local.get(), &local.length) != 0) return ErrnoStatus("getsockname");
  KVD_ASSIGN_OR_RETURN(const auto device, PickDevice(target.device, local));
  KVD_ASSIGN_OR_RETURN(ClientPath path,
                       MakeClientPath(device.first, device.second, target, hello.credits_wanted));
  LocalEnd end;
  KVD_ASSIGN_OR_RETURN(ExchangeData mine,
                       DescribeEnd(*path.pd->context(), device.second, target.gid_index,
                                   local.get(), *path.qp, path.limits.depth, end));
  mine.version_min = hello.version_min;
  mine.version_max = hello.version_max;
  mine.credits_wanted = hello.credits_wanted;
  // A new connection's buffer takes that much at once.
  if (send(socket.get(), &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine)) {
    return absl::UnavailableError(absl::StrCat(where, " does not take a message by TCP"));
  }
  std::byte answer[sizeof(ExchangeData)];
  KVD_RETURN_IF_ERROR(ReceiveAll(socket, answer, where, deadline_ns));
  ExchangeData peer;
  if (absl::Status judged = ParseExchange(answer, true, peer); !judged.ok()) {
    return absl::IsInvalidArgument(judged) ? absl::DataLossError(judged.message()) : judged;
  }
  path.depth = Negotiate(path.limits.depth, peer.initiator, peer.responder);
  path.mtu_bytes = MtuBytes(static_cast<ibv_mtu>(std::min(mine.mtu, peer.mtu)));
  KVD_RETURN_IF_ERROR(ConnectByHand(*path.qp, end, mine, peer, path.depth));
  path.ends = {.client = EndOf(mine), .server = EndOf(peer)};
  path.socket = std::move(socket);
  path.name = absl::StrCat(where, " by ", device.first);
  return path;
}

}  // namespace

absl::StatusOr<ClientPath> ConnectByTcp(const VerbsTarget& target, const Hello& hello,
                                        int64_t deadline_ns) {
  KVD_ASSIGN_OR_RETURN(const auto addresses, Resolve(HostPort{target.host, target.port}, false));
  absl::Status first;
  for (const SocketAddress& to : addresses) {
    absl::StatusOr<ClientPath> path = ExchangeWith(to, target, hello, deadline_ns);
    if (path.ok() || !absl::IsUnavailable(path.status())) return path;
    if (first.ok()) first = path.status();
  }
  return first;
}

}  // namespace kvd::verbs
