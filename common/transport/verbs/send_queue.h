// The send side of one queue pair: work requests chained for one doorbell, signaled now and then,
// retired in order.
//
// A reliable connection completes its requests in the order in which they were posted, so one
// completion also says that all requests before it are done. Each request carries a number that
// counts up; the completion of number n retires everything up to n. That is what makes it safe to
// signal only some.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/transport/verbs/memory_region.h"
#include "common/transport/verbs/memory_window.h"

namespace kvd::verbs {

// In a wr_id: it belongs to a receive. Send requests have their number there.
inline constexpr uint64_t kReceiveBit = uint64_t{1} << 63;

class SendQueue {
 public:
  // `signal_every`: at least one of so many requests is signaled.
  SendQueue(uint32_t capacity, uint32_t signal_every)
      : signal_every_(signal_every), requests_(capacity), pieces_(capacity), cookies_(capacity) {}

  uint32_t capacity() const { return static_cast<uint32_t>(requests_.size()); }
  // How many more can be added. A request takes room until it is retired.
  size_t room() const { return requests_.size() - static_cast<size_t>(next_ - retired_); }
  bool empty() const { return next_ == retired_; }
  bool unposted() const { return next_ != posted_; }
  // Whether the device has requests of ours: only then has it anything to complete.
  bool under_way() const { return posted_ != retired_; }

  struct Local {
    const std::byte* at;
    uint32_t key;
    uint32_t bytes;
  };

  // Each adds one request to the chain; there must be room. `cookie` comes back when it is retired.
  void AddSend(const Local& from, bool copy_inline, uint64_t cookie);
  void AddRead(const Local& into, uint64_t remote_address, uint32_t remote_key, uint64_t cookie);

  // Lets the peer of this queue pair READ the region by the window's key, from its execution on.
  // The region was registered with IBV_ACCESS_MW_BIND.
  void AddBind(const MemoryWindow& window, const MemoryRegion& region, uint64_t cookie);
  // Takes that back. READs under way by the key end with a remote access error, which also ends the
  // connection.
  void AddInvalidate(uint32_t key, uint64_t cookie);

  // Makes the last one added signaled.
  void SignalLast();

  // Rings the doorbell for the chain. An error is the queue pair's end: requests before the one
  // that the device refused are under way, and complete or are flushed; the others stay, unposted.
  absl::Status Post(ibv_qp* qp);

  // Retires the request with this number and all before it, oldest first. False: the number cannot
  // be.
  template <typename Done>
  bool Retire(uint64_t number, Done&& done) {
    if (number < retired_ || number >= posted_) return false;
    while (retired_ <= number) done(cookies_[retired_++ % requests_.size()]);
    return true;
  }

  // Retires all that is left, once the queue pair can complete nothing any more.
  template <typename Done>
  void RetireAll(Done&& done) {
    while (retired_ < next_) done(cookies_[retired_++ % requests_.size()]);
    posted_ = next_;
  }

 private:
  ibv_send_wr& Add(const Local& local, uint64_t cookie);

  uint32_t signal_every_;
  uint32_t unsignaled_ = 0;
  uint64_t retired_ = 0;  // requests below this number are done
  uint64_t posted_ = 0;   // below this one have been handed to the device
  uint64_t next_ = 0;
  std::vector<ibv_send_wr> requests_;
  std::vector<ibv_sge> pieces_;
  std::vector<uint64_t> cookies_;
};

}  // namespace kvd::verbs
