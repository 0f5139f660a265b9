// A reliable connection's end, taken through its states by hand: with what rdma_cm says about the
// path, or with what a TCP exchange brought. By hand, because the library's own way grants the peer
// remote reads and writes from the start and leaves min_rnr_timer at 655 ms.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/transport/verbs/completion_queue.h"
#include "common/transport/verbs/memory_window.h"
#include "common/transport/verbs/rdma_context.h"

namespace kvd::verbs {

// How long a silent path is believed in: 4.096 us * 2^14 = 67 ms for each of 1 + 6 tries, so a dead
// one is noticed after about half a second, and a flap of a third of a second is ridden out. Never
// 7: some devices take that for ever.
inline constexpr uint8_t kAckTimeout = 14;
inline constexpr uint8_t kRetryCount = 6;
// The longest of it: a device may take up to four times as long for each try
// (InfiniBand, 9.7.6.1.3).
inline constexpr int64_t kDeviceGivesUpNs = (kRetryCount + 1) * 4 * (int64_t{4096} << kAckTimeout);
// A sender whose peer has no receive posted tries again after 0.64 ms, without end. Credits see to
// it that this happens only while a hostile peer drains the shared receives; what bounds it is each
// operation's own deadline.
inline constexpr uint8_t kMinRnrTimer = 12;
inline constexpr uint8_t kRnrRetryForEver = 7;

struct QueuePairOptions {
  std::shared_ptr<ProtectionDomain> pd;
  std::shared_ptr<CompletionQueue> cq;
  ibv_srq* srq = nullptr;  // outlives the queue pair; null: receives of its own
  uint32_t send_requests = 0;
  uint32_t receive_requests = 0;  // without srq
  uint32_t inline_bytes_wanted = 0;
};

// READs that each side may have under way.
struct ReadDepth {
  uint8_t initiator = 1;  // ours at the peer
  uint8_t responder = 1;  // the peer's at us
};

// Its control calls may come from several threads at once; posting is for one.
class QueuePair {
 public:
  static absl::StatusOr<std::shared_ptr<QueuePair>> Create(QueuePairOptions options);
  ~QueuePair() { Destroy(); }
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  ibv_qp* get() const { return qp_; }
  uint32_t number() const { return number_; }
  uint32_t inline_bytes_max() const { return inline_bytes_max_; }

  // Reset to INIT, then to RTR and RTS, with the path of `id`. The peer has no remote access
  // whatever.
  absl::Status InitByCm(rdma_cm_id* id);
  absl::Status ConnectByCm(rdma_cm_id* id, const ReadDepth& depth);

  // Any transition, with `what` for the error's text.
  absl::Status Modify(ibv_qp_attr attributes, int mask, const char* what);

  // The peer's queue pair, once connected; 0 where the fabric has no such numbers (iWARP), or it
  // cannot be learned.
  uint32_t PeerNumber();

  // Lets the peer READ what its keys cover. On a connected queue pair.
  absl::Status GrantRemoteRead();

  // The window by which the peer reads, to be bound by a request of this queue pair. It goes before
  // the queue pair does: a device may wait for that, with the queue pair's destruction, for long.
  void Keep(std::unique_ptr<MemoryWindow> window);
  // Null: there is none. Not while another thread destroys the queue pair.
  const MemoryWindow* window() const { return window_.get(); }

  // Flushes whatever is posted. Harmless if it has failed already.
  void ToError();

  // After this the device touches no memory for it any more. Not while another thread posts.
  void Destroy();

 private:
  QueuePair(QueuePairOptions options, ibv_qp* qp, uint32_t inline_bytes_max);

  QueuePairOptions options_;
  std::mutex mutex_;  // of control calls
  std::unique_ptr<MemoryWindow> window_;
  ibv_qp* qp_;
  uint32_t number_;
  uint32_t inline_bytes_max_;
};

}  // namespace kvd::verbs
