#include "common/transport/verbs/receive_pool.h"

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/transport/verbs/send_queue.h"

namespace kvd::verbs {

absl::StatusOr<std::unique_ptr<ReceivePool>> ReceivePool::Create(
    std::shared_ptr<ProtectionDomain> pd, uint32_t receives_max, size_t message_bytes) {
  ibv_srq_init_attr attributes{};
  attributes.attr.max_wr = receives_max;
  attributes.attr.max_sge = 1;
  ibv_srq* srq = ibv_create_srq(pd->get(), &attributes);
  if (srq == nullptr) {
    return ErrnoStatus(absl::StrCat("creating a shared receive queue of ", receives_max, " on ",
                                    pd->context()->name()));
  }
  return std::unique_ptr<ReceivePool>(
      new ReceivePool(std::move(pd), srq, receives_max, message_bytes));
}

ReceivePool::~ReceivePool() { ibv_destroy_srq(srq_); }

absl::Status ReceivePool::Grant(uint32_t count) {
  const std::lock_guard lock(mutex_);
  if (count > receives_max_ - granted_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("server full: ", receives_max_, " shared receives are promised to others"));
  }
  const uint32_t missing = granted_ + count > posted_ ? granted_ + count - posted_ : 0;
  KVD_RETURN_IF_ERROR(slots_.Reserve(missing));
  for (uint32_t i = 0; i < missing; ++i) {
    KVD_ASSIGN_OR_RETURN(const uint32_t slot, slots_.Take());
    if (absl::Status posted = Post(slot); !posted.ok()) {
      slots_.Give(slot);
      return posted;
    }
    ++posted_;
  }
  granted_ += count;
  return absl::OkStatus();
}

void ReceivePool::Release(uint32_t count) {
  const std::lock_guard lock(mutex_);
  granted_ -= count;  // what is posted beyond that is not posted again
}

const std::byte* ReceivePool::At(uint32_t slot) const {
  const std::lock_guard lock(mutex_);  // a grant may be adding a slab
  return slots_.At(slot);
}

void ReceivePool::GiveBack(std::span<const uint32_t> slots) {
  const std::lock_guard lock(mutex_);
  for (const uint32_t slot : slots) {
    if (posted_ > granted_ || !Post(slot).ok()) {
      --posted_;
      slots_.Give(slot);
    }
  }
}

absl::Status ReceivePool::Post(uint32_t slot) {
  ibv_sge into{reinterpret_cast<uint64_t>(slots_.At(slot)),
               static_cast<uint32_t>(slots_.slot_bytes()), slots_.KeyOf(slot)};
  ibv_recv_wr receive{kReceiveBit | slot, nullptr, &into, 1};
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_srq_recv(srq_, &receive, &bad);
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, "posting a shared receive");
}

}  // namespace kvd::verbs
