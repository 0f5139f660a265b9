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

// As many as the kernel lets one packet carry (SCM_MAX_FD). All are received: whatever had no room
// would be closed by the kernel on this thread, for as long as that takes.
inline constexpr size_t kPacketFdsMax = 253;

// Descriptors that no packet of this protocol carries.
class SurplusFds {
 public:
  SurplusFds() {}  // the array stays as it is, since few packets have any
  ~SurplusFds() {
    while (count_ > 0) Take().Reset();
  }
  SurplusFds(const SurplusFds&) = delete;
  SurplusFds& operator=(const SurplusFds&) = delete;

  size_t count() const { return count_; }
  void Add(UniqueFd fd) { fds_.at(count_++) = fd.Release(); }
  UniqueFd Take() { return UniqueFd(fds_.at(--count_)); }

 private:
  size_t count_ = 0;
  std::array<int, kPacketFdsMax> fds_;
};

struct Packet {
  size_t bytes = 0;
  bool truncated = false;  // it was longer than the buffer
  bool fds_lost = false;   // descriptors did not fit, or this process may have no more of them
  // The sender's credentials came along, as with every packet of a socket with SO_PASSCRED: it is
  // one, and not the end, even if it has no bytes.
  bool credentials = false;
  size_t fd_count = 0;  // of all, the surplus included
  std::array<UniqueFd, 2> fds;
  SurplusFds surplus;
};

// Takes one packet into a Packet that is still empty, without blocking. 0, or the errno: EAGAIN if
// there is none. A packet of 0 bytes is the peer's end (or an empty one: see Packet::credentials).
int ReceivePacket(int socket, std::span<std::byte> buffer, Packet& packet);

}  // namespace kvd
