// The client's half of connecting: from a target to a queue pair that the server answers on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/admission/proof.h"
#include "common/base/unique_fd.h"
#include "common/layout/hello.h"
#include "common/transport/verbs/cm_id.h"
#include "common/transport/verbs/completion_queue.h"
#include "common/transport/verbs/limits.h"
#include "common/transport/verbs/queue_pair.h"
#include "common/transport/verbs/rdma_context.h"
#include "common/transport/verbs/verbs_target.h"

namespace kvd::verbs {

struct ClientPath {
  std::shared_ptr<ProtectionDomain> pd;
  std::shared_ptr<CompletionQueue> cq;
  std::shared_ptr<QueuePair> qp;
  CmId id;          // kCm
  UniqueFd socket;  // kTcp: open for as long as the peer lives
  Limits limits;
  ReadDepth depth;  // as both sides agreed
  uint32_t mtu_bytes = 0;
  uint32_t credits = 0;  // that the queues were sized for
  ChannelEnds ends;      // but for the queue pairs' numbers
  std::string name;      // "10.0.0.2:7711 by mlx5_0"
};

// Queues of a client with so many credits.
constexpr uint32_t ClientSendsMax(uint32_t credits) { return 2 * credits + 8; }
constexpr uint32_t ClientReceives(uint32_t credits) { return credits + 3; }

// NotFound: no such host or device; Unavailable: nobody listens, no route, refused for now;
// FailedPrecondition: no common version; PermissionDenied; ResourceExhausted; DeadlineExceeded.
// Blocks until `deadline_ns` at most.
absl::StatusOr<ClientPath> ConnectByCm(const VerbsTarget& target, const Hello& hello,
                                       int64_t deadline_ns);
absl::StatusOr<ClientPath> ConnectByTcp(const VerbsTarget& target, const Hello& hello,
                                        int64_t deadline_ns);

// The queues of a client on this device, not yet connected.
absl::StatusOr<ClientPath> MakeClientPath(const std::string& device, uint8_t port,
                                          const VerbsTarget& target, uint32_t credits_wanted);

}  // namespace kvd::verbs
