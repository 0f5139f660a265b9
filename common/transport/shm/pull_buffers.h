// A client's buffers that the server may pull from: memfds, registered with the server over the
// session's socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transport/client_channel.h"
#include "common/transport/shared_pages.h"

namespace kvd {

class PullBuffers {
 public:
  // `socket` is borrowed and outlives this object.
  explicit PullBuffers(int socket) : socket_(socket) {}

  // As ClientChannel says. DeadlineExceeded: the server does not take what is in the socket, which
  // is waited for some milliseconds at most.
  absl::StatusOr<TransferBuffer> Allocate(size_t bytes);
  absl::StatusOr<TransferBuffer> Register(std::shared_ptr<SharedPages> pages);
  void Free(const TransferBuffer& buffer);  // never blocks

 private:
  // A buffer that has been freed here and of which the server has not been told.
  struct Forget {
    uint32_t id;
    uint64_t bytes;
  };

  struct Buffer {
    uint32_t id;
    std::shared_ptr<SharedPages> pages;
  };

  absl::Status CheckRoom(size_t bytes);
  void SendForgets();

  int socket_;
  uint32_t next_id_ = 1;
  uint64_t bytes_ = 0;  // of all that the server counts
  std::vector<Buffer> buffers_;
  std::vector<Forget> forgets_;
};

}  // namespace kvd
