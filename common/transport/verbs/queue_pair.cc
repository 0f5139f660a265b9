#include "common/transport/verbs/queue_pair.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace kvd::verbs {
namespace {

absl::StatusOr<ibv_qp_attr> PathOf(rdma_cm_id* id, ibv_qp_state state, int& mask) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  if (rdma_init_qp_attr(id, &attributes, &mask) != 0)
    return ErrnoStatus("asking rdma_cm for the path");
  return attributes;
}

}  // namespace

absl::StatusOr<std::shared_ptr<QueuePair>> QueuePair::Create(QueuePairOptions options) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = options.cq->get();
  wanted.recv_cq = options.cq->get();
  wanted.srq = options.srq;
  wanted.cap.max_send_wr = options.send_requests;
  wanted.cap.max_recv_wr = options.srq == nullptr ? options.receive_requests : 0;
  wanted.cap.max_send_sge = 1;
  wanted.cap.max_recv_sge = 1;
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 0;
  // No attribute says how much a device can inline: ask for less until it agrees.
  for (uint32_t inline_bytes = options.inline_bytes_wanted;; inline_bytes /= 2) {
    wanted.cap.max_inline_data = inline_bytes;
    ibv_qp_init_attr got = wanted;
    if (ibv_qp* qp = ibv_create_qp(options.pd->get(), &got)) {
      return std::shared_ptr<QueuePair>(
          new QueuePair(std::move(options), qp, got.cap.max_inline_data));
    }
    if (inline_bytes == 0) break;
  }
  return ErrnoStatus(absl::StrCat("creating a queue pair of ", options.send_requests, " sends and ",
                                  options.receive_requests, " receives on ",
                                  options.pd->context()->name()));
}

QueuePair::QueuePair(QueuePairOptions options, ibv_qp* qp, uint32_t inline_bytes_max)
    : options_(std::move(options)),
      qp_(qp),
      number_(qp->qp_num),
      inline_bytes_max_(inline_bytes_max) {}

void QueuePair::Destroy() {
  const std::lock_guard lock(mutex_);
  window_.reset();
  if (ibv_qp* qp = std::exchange(qp_, nullptr)) ibv_destroy_qp(qp);
}

absl::Status QueuePair::Modify(ibv_qp_attr attributes, int mask, const char* what) {
  const std::lock_guard lock(mutex_);
  if (qp_ == nullptr) return absl::UnavailableError("the queue pair has gone");
  const int error = ibv_modify_qp(qp_, &attributes, mask);
  return error == 0 ? absl::OkStatus()
                    : ErrnoStatus(error, absl::StrCat("bringing a queue pair to ", what));
}

absl::Status QueuePair::InitByCm(rdma_cm_id* id) {
  int mask = 0;
  KVD_ASSIGN_OR_RETURN(ibv_qp_attr attributes, PathOf(id, IBV_QPS_INIT, mask));
  attributes.qp_access_flags = 0;
  return Modify(attributes, mask | IBV_QP_ACCESS_FLAGS, "INIT");
}

absl::Status QueuePair::ConnectByCm(rdma_cm_id* id, const ReadDepth& depth) {
  int mask = 0;
  KVD_ASSIGN_OR_RETURN(ibv_qp_attr attributes, PathOf(id, IBV_QPS_RTR, mask));
  attributes.max_dest_rd_atomic = depth.responder;
  attributes.min_rnr_timer = kMinRnrTimer;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) attributes.qp_access_flags = 0;  // iWARP
  KVD_RETURN_IF_ERROR(Modify(attributes, mask, "RTR"));
  mask = 0;
  KVD_ASSIGN_OR_RETURN(attributes, PathOf(id, IBV_QPS_RTS, mask));
  attributes.max_rd_atomic = depth.initiator;
  attributes.timeout = kAckTimeout;
  attributes.retry_cnt = kRetryCount;
  attributes.rnr_retry = kRnrRetryForEver;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) attributes.qp_access_flags = 0;
  return Modify(attributes, mask, "RTS");
}

uint32_t QueuePair::PeerNumber() {
  const std::lock_guard lock(mutex_);
  if (qp_ == nullptr || qp_->context->device->transport_type != IBV_TRANSPORT_IB) return 0;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  const int error = ibv_query_qp(qp_, &attributes, IBV_QP_DEST_QPN, &initial);
  return error == 0 ? attributes.dest_qp_num : 0;
}

absl::Status QueuePair::GrantRemoteRead() {
  ibv_qp_attr attributes{};
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  const absl::Status granted = Modify(attributes, IBV_QP_ACCESS_FLAGS, "remote reads");
  if (!absl::IsInvalidArgument(granted)) return granted;
  // The attributes are always right; what is wrong is the state, since the peer has gone meanwhile.
  return absl::UnavailableError(
      absl::StrCat("the connection ended while it was made: ", granted.message()));
}

void QueuePair::Keep(std::unique_ptr<MemoryWindow> window) {
  const std::lock_guard lock(mutex_);
  window_ = std::move(window);
}

void QueuePair::ToError() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  Modify(attributes, IBV_QP_STATE, "ERROR").IgnoreError();
}

}  // namespace kvd::verbs
