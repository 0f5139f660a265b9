// Connections that have ended and whose goodbye cannot leave now.
//
// The kernel says goodbye to the peer of an id that is destroyed, by the one queue pair of the
// device by which everybody connects. Soft-RoCE (seen with Linux 6.1) puts that queue pair into
// error, for good, when there is no route for what it sends: a link that is down for a second and
// one id destroyed meanwhile, and nobody connects by that device any more. So an id waits here
// until its path can carry a message, or its device has gone.
#pragma once

#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "common/transport/verbs/cm_id.h"

namespace kvd::verbs {

// Whether what rdma_cm says to this id's peer can leave: the port is active, and the kernel knows a
// way from the id's own address to its peer's. True also where nothing would be said (no peer, no
// device yet) and where the device is being removed. Asks the kernel only.
bool PathCarries(rdma_cm_id* id);

// Whether the device is there; false also while it is being removed and still waits for its users.
bool DeviceIsThere(const ibv_device& device);

// The process has one, because rdma_cm and devices are the process's too. Thread-safe.
class ParkedIds {
 public:
  static ParkedIds& OfProcess();

  // Takes an id over. What is posted on its queue pair is no concern here.
  void Park(std::shared_ptr<CmEventChannel> channel, rdma_cm_id* id);

  // Destroys those whose path carries again. Whoever makes connections calls it now and then.
  void Sweep();

  size_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Parked {
    std::shared_ptr<CmEventChannel> channel;
    rdma_cm_id* id;
  };

  std::mutex mutex_;
  std::vector<Parked> parked_;    // guarded by mutex_
  std::atomic<size_t> count_{0};  // of parked_
};

}  // namespace kvd::verbs
