// A client's channel over a reliable connection of an RDMA device.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/layout/hello.h"
#include "common/transport/client_channel.h"
#include "common/transport/verbs/verbs_target.h"

namespace kvd {

class VerbsClientChannel {
 public:
  // Connects, is admitted, and READs a little of the region in growing sizes, so that a path on
  // which large packets are lost is found here and not in the first long GET. Blocks until
  // `deadline_ns` at most.
  //
  // NotFound: no such host or device. Unavailable: nobody listens, no route, the path loses
  // packets, refused for now: try again later. FailedPrecondition: no common version.
  // PermissionDenied: not admitted. ResourceExhausted: memory to register, queues. DataLoss: the
  // server breaks the protocol. DeadlineExceeded.
  static absl::StatusOr<std::unique_ptr<ClientChannel>> Connect(const VerbsTarget& target,
                                                                const Hello& hello,
                                                                int64_t deadline_ns);
};

}  // namespace kvd
