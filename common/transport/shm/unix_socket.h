// Unix sockets as the shared-memory transport uses them: packets (SOCK_SEQPACKET) that carry
// descriptors.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"

namespace kvd {

inline constexpr size_t kSocketPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;  // 107

// InvalidArgument: the path is empty or longer than kSocketPathBytesMax, and the message names both
// lengths.
absl::StatusOr<sockaddr_un> MakeUnixAddress(const std::string& path);

// A new close-on-exec SOCK_SEQPACKET socket.
absl::StatusOr<UniqueFd> MakeUnixSocket();

// Sends one packet without blocking and without SIGPIPE. 0, or the errno: EAGAIN when the peer does
// not read.
int SendPacket(int socket, std::span<const std::byte> packet, std::span<const int> fds = {});

struct Packet {
  size_t bytes = 0;
  bool truncated = false;  // it was longer than the buffer
  bool fds_lost = false;   // descriptors did not fit, or this process may have no more of them
  size_t fd_count = 0;
  std::array<UniqueFd, 2> fds;
};

// Takes one packet without blocking. 0, or the errno: EAGAIN if there is none. A packet of 0 bytes
// is the peer's end.
int ReceivePacket(int socket, std::span<std::byte> buffer, Packet& packet);

}  // namespace kvd
