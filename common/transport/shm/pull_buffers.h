// A client's buffers that the server may pull from: memfds, registered with the server over the
// session's socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mapped_memory.h"
#include "common/transport/client_channel.h"

namespace kvd {

class PullBuffers {
 public:
  // `socket` is borrowed and outlives this object.
  explicit PullBuffers(int socket) : socket_(socket) {}

  // As ClientChannel says. DeadlineExceeded: the server does not take what is in the socket, which
  // is waited for some milliseconds at most.
  absl::StatusOr<TransferBuffer> Allocate(size_t bytes);
  void Free(const TransferBuffer& buffer);  // never blocks

 private:
  // A buffer that has been freed here and of which the server has not been told.
  struct Forget {
    uint32_t id;
    uint64_t bytes;
  };

  struct Buffer {
    uint32_t id;
    MappedMemory memory;
  };

  void SendForgets();

  int socket_;
  uint32_t next_id_ = 1;
  uint64_t bytes_ = 0;  // of all that the server counts
  std::vector<Buffer> buffers_;
  std::vector<Forget> forgets_;
};

}  // namespace kvd
