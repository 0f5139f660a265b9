#include "common/transport/verbs/send_queue.h"

#include "common/base/check.h"
#include "common/base/errno_status.h"

namespace kvd::verbs {

ibv_send_wr& SendQueue::Add(const Local& local, uint64_t cookie) {
  KVD_CHECK(room() > 0);
  const size_t at = next_ % requests_.size();
  pieces_[at] = ibv_sge{reinterpret_cast<uint64_t>(local.at), local.bytes, local.key};
  ibv_send_wr& request = requests_[at];
  request = ibv_send_wr{};
  request.wr_id = next_;
  request.sg_list = &pieces_[at];
  request.num_sge = local.bytes == 0 ? 0 : 1;
  cookies_[at] = cookie;
  if (next_ != posted_) requests_[(next_ - 1) % requests_.size()].next = &request;
  ++next_;
  if (++unsignaled_ >= signal_every_) {
    request.send_flags = IBV_SEND_SIGNALED;
    unsignaled_ = 0;
  }
  return request;
}

void SendQueue::AddSend(const Local& from, bool copy_inline, uint64_t cookie) {
  ibv_send_wr& request = Add(from, cookie);
  request.opcode = IBV_WR_SEND;
  if (copy_inline) request.send_flags |= IBV_SEND_INLINE;
}

void SendQueue::AddRead(const Local& into, uint64_t remote_address, uint32_t remote_key,
                        uint64_t cookie) {
  ibv_send_wr& request = Add(into, cookie);
  request.opcode = IBV_WR_RDMA_READ;
  request.wr.rdma.remote_addr = remote_address;
  request.wr.rdma.rkey = remote_key;
}

void SendQueue::AddBind(const MemoryWindow& window, const MemoryRegion& region, uint64_t cookie) {
  ibv_send_wr& request = Add({nullptr, 0, 0}, cookie);
  request.opcode = IBV_WR_BIND_MW;
  request.bind_mw.mw = window.get();
  request.bind_mw.rkey = window.rkey();
  request.bind_mw.bind_info.mr = region.get();
  request.bind_mw.bind_info.addr = reinterpret_cast<uint64_t>(region.base());
  request.bind_mw.bind_info.length = region.length_bytes();
  request.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
}

void SendQueue::AddInvalidate(uint32_t key, uint64_t cookie) {
  ibv_send_wr& request = Add({nullptr, 0, 0}, cookie);
  request.opcode = IBV_WR_LOCAL_INV;
  request.invalidate_rkey = key;
}

void SendQueue::SignalLast() {
  if (next_ == posted_) return;
  requests_[(next_ - 1) % requests_.size()].send_flags |= IBV_SEND_SIGNALED;
  unsignaled_ = 0;
}

absl::Status SendQueue::Post(ibv_qp* qp) {
  if (next_ == posted_) return absl::OkStatus();
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, &requests_[posted_ % requests_.size()], &bad);
  if (error == 0) {
    posted_ = next_;
    return absl::OkStatus();
  }
  if (bad != nullptr && bad->wr_id >= posted_ && bad->wr_id < next_) posted_ = bad->wr_id;
  return ErrnoStatus(error, "posting to a send queue");
}

}  // namespace kvd::verbs
