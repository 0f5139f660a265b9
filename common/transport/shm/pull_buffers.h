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

  // As ClientChannel says. May block for a second if the server does not take what is in the
  // socket.
  absl::StatusOr<TransferBuffer> Allocate(size_t bytes);
  void Free(const TransferBuffer& buffer);

 private:
  struct Buffer {
    uint32_t id;
    MappedMemory memory;
  };

  int socket_;
  uint32_t next_id_ = 1;
  uint64_t bytes_ = 0;
  std::vector<Buffer> buffers_;
};

}  // namespace kvd
