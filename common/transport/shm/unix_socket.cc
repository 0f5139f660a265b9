#include "common/transport/shm/unix_socket.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/errno_status.h"

namespace kvd {
namespace {

constexpr size_t kFdsMax = std::tuple_size_v<decltype(Packet::fds)>;

// For descriptors, and the credentials that come before them if they come.
struct ControlBuffer {
  alignas(cmsghdr) char bytes[CMSG_SPACE(kPacketFdsMax * sizeof(int)) + CMSG_SPACE(sizeof(ucred))];
};

void TakeDescriptors(msghdr& message, Packet& packet) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) packet.credentials = true;
    if (part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(fd));
      if (packet.fd_count++ < kFdsMax) {
        packet.fds[packet.fd_count - 1].Reset(fd);
      } else {
        packet.surplus.Add(UniqueFd(fd));
      }
    }
  }
}

}  // namespace

absl::StatusOr<sockaddr_un> MakeUnixAddress(const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError("the socket path is empty");
  if (path.size() > kSocketPathBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the socket path ", path, " has ", path.size(),
                                                   " bytes; the limit is ", kSocketPathBytesMax,
                                                   ": choose a shorter one"));
  }
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("the socket path contains a NUL byte");
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

absl::StatusOr<UniqueFd> MakeUnixSocket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus("socket(AF_UNIX, SOCK_SEQPACKET)");
  return fd;
}

int SendPacket(int socket, std::span<const std::byte> packet, std::span<const int> fds) {
  KVD_CHECK(fds.size() <= kPacketFdsMax);
  iovec part{const_cast<std::byte*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control;
  if (!fds.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  while (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int ReceivePacket(int socket, std::span<std::byte> buffer, Packet& packet) {
  iovec part{buffer.data(), buffer.size()};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  ssize_t bytes;
  while ((bytes = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0) {
    if (errno != EINTR) return errno;
  }
  TakeDescriptors(message, packet);
  packet.bytes = static_cast<size_t>(bytes);
  packet.truncated = (message.msg_flags & MSG_TRUNC) != 0;
  packet.fds_lost = (message.msg_flags & MSG_CTRUNC) != 0;
  return 0;
}

}  // namespace kvd
