// Descriptors that a peer sent, or may have left unread in its socket, are closed on a thread of
// their own. A close() may last as long as the peer likes: a TCP socket with SO_LINGER and unsent
// bytes, a file of a file system that the peer serves. Neither a poller nor the accepting thread
// may wait for that.
#pragma once

#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "common/base/unique_fd.h"
#include "common/transport/shm/unix_socket.h"

namespace kvd {

// Starts the thread of this process; once is enough. It lives as long as the process, since nobody
// could wait for its end. ResourceExhausted: no thread.
absl::Status StartDescriptorCloser();

// Hands over what came from a peer. Does not block, except if no closer was started or more
// than 65536 descriptors wait for it: then it closes here.
void CloseElsewhere(UniqueFd fd);
void CloseElsewhere(Packet& packet);  // all that is left in it

// How many wait for it. They still count against this process' limit, so whoever takes descriptors
// from peers stops while they are many of it.
size_t DescriptorsToClose();

// For tests: the thread stays before its next close() as long as this is held, as if a peer kept
// it.
std::unique_lock<std::mutex> HoldDescriptorCloser();

// The server's end of a session's or a handshake's socket. When it goes, the peer sees the end of
// the connection at once, after whatever was sent before; what the peer sent and nobody has read is
// dropped, and the descriptor closed, elsewhere.
class PeerSocket {
 public:
  PeerSocket() = default;
  explicit PeerSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  ~PeerSocket() { Reset(); }
  PeerSocket(PeerSocket&&) noexcept = default;
  PeerSocket& operator=(PeerSocket&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::move(other.fd_);
    }
    return *this;
  }

  int get() const { return fd_.get(); }
  bool valid() const { return fd_.valid(); }
  void Reset();

 private:
  UniqueFd fd_;
};

}  // namespace kvd
