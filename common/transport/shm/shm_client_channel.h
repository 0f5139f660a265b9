// A ClientChannel to a kvd on the same host, over its Unix socket and shared memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/admission/access_rules.h"
#include "common/layout/hello.h"
#include "common/transport/client_channel.h"

namespace kvd {

class ShmClientChannel {
 public:
  // Connects to the socket at `path` and says `hello` (magic and versions included). Blocks until
  // the server has answered, at most until the monotonic clock passes `deadline_ns`. The window of
  // the returned channel has been checked: its size, that it cannot shrink, and that the identity
  // in its superblock is the one that the server announced.
  //
  // `key`: what to prove to be admitted by; null: nothing.
  //
  //   InvalidArgument     the path is empty or too long for a socket
  //   Unavailable         nobody listens there, the server is full, shutting down, or went away:
  //                       start it, or try again
  //   PermissionDenied    the socket may not be opened, or the server does not admit this user or
  //                       key, or it has not proved to have the key itself
  //   FailedPrecondition  no protocol version that both speak
  //   DeadlineExceeded    no answer in time
  //   ResourceExhausted   no descriptor or address space left in this process
  //   DataLoss            what answered does not keep the protocol
  static absl::StatusOr<std::unique_ptr<ClientChannel>> Connect(
      const std::string& path, const Hello& hello, int64_t deadline_ns,
      std::shared_ptr<const AccessKey> key = nullptr);
};

}  // namespace kvd
