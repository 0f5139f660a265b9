// READs of a session whose region is remote, from whoever needs some: collected, posted as chains
// under one doorbell each, and handed back to whom they belong when they have completed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "common/layout/units.h"
#include "common/transport/client_channel.h"

namespace kvd {

struct ReadTicket;

// Whom a READ belongs to that nobody waits for by itself.
class ReadOwner {
 public:
  // The READ is done; it may submit the same ticket, or others, again.
  virtual void OnRead(ReadTicket& ticket) = 0;

 protected:
  ~ReadOwner() = default;
};

// One READ. Belongs to whoever submits it, who keeps it and the memory it lands in until it is
// done: also past a deadline, since only then the device will not touch that memory any more. A
// session that ends ends all of them.
struct ReadTicket {
  RegionOffset offset{};
  uint64_t length = 0;
  std::byte* into = nullptr;   // memory of the channel
  ReadOwner* owner = nullptr;  // null: whoever submitted it looks at `done`
  void* context = nullptr;     // the owner's
  bool done = true;            // one that has an owner: and the owner has been told
  bool ok = false;             // once done: the bytes are there
  ReadTicket* next = nullptr;  // the queue's, until it is done
};

// Tickets in the order in which they came, linked through themselves: no memory is needed for it.
class ReadTicketList {
 public:
  bool empty() const { return first_ == nullptr; }
  ReadTicket& first() const { return *first_; }
  void PushBack(ReadTicket& ticket) {
    ticket.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &ticket;
    last_ = &ticket;
  }
  ReadTicket& PopFront() { return *std::exchange(first_, first_->next); }
  // False: it is not in the list.
  bool Remove(ReadTicket& ticket) {
    ReadTicket* before = nullptr;
    for (ReadTicket* at = first_; at != nullptr; before = std::exchange(at, at->next)) {
      if (at != &ticket) continue;
      (before == nullptr ? first_ : before->next) = ticket.next;
      if (last_ == &ticket) last_ = before;
      return true;
    }
    return false;
  }
  // Everything before `ticket` goes; null: everything.
  void DropBefore(ReadTicket* ticket) { first_ = ticket; }

 private:
  ReadTicket* first_ = nullptr;
  ReadTicket* last_ = nullptr;
};

// One thread at a time; never blocks.
class ReadQueue {
 public:
  // `channel` outlives the queue.
  explicit ReadQueue(ClientChannel& channel) : channel_(channel) {}
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  // To be posted by the next Pump.
  void Submit(ReadTicket& ticket) {
    ticket.done = false;
    waiting_.PushBack(ticket);
  }

  // Nobody wants its bytes any more. It is done at once if it was not posted; otherwise soon,
  // however long it is, without being told to anybody but an owner.
  void GiveUp(ReadTicket& ticket);

  // Posts what waits, as far as the channel has room, and takes what has completed. On an error,
  // which is the channel's, what waits stays waiting.
  absl::Status Pump() { return posted_ == 0 && waiting_.empty() ? absl::OkStatus() : PumpSome(); }

  // The quick way of one READ, if nothing else waits or is under way: posts it and polls for a
  // little while. True: it is done and ok. Otherwise `ticket.done` tells: true, nothing was posted,
  // or the READ failed; false, it is under way.
  bool TryRead(ReadTicket& ticket) {
    if (posted_ != 0 || !waiting_.empty()) return false;
    ops_[0] =
        ReadOp{ticket.offset, ticket.length, ticket.into, reinterpret_cast<uint64_t>(&ticket)};
    if (!channel_.PostReads(std::span(ops_).first(1)).ok()) return false;
    ++chains_;
    for (int polls = 0; polls < kPollsAtOnce; ++polls) {
      if (channel_.PollReads(std::span(completions_).first(1)) == 0) continue;
      ticket.ok = completions_[0].ok;
      if (!ticket.ok) [[unlikely]]
        failed_ = true;
      return ticket.ok;
    }
    posted_ = 1;
    ticket.done = false;
    return false;
  }

  // Tells the owners of those that are done. True if there were any: they may have submitted more,
  // to be posted before anybody waits.
  bool Dispatch() {
    const bool any = !finished_.empty();
    while (!finished_.empty()) {
      ReadTicket& ticket = finished_.PopFront();
      ticket.done = true;
      ticket.owner->OnRead(ticket);
    }
    return any;
  }

  // READs have completed whose owners have not been told: nothing will wake anybody for them again.
  bool anything_to_dispatch() const { return !finished_.empty(); }

  // READs are under way, or one has ended without its bytes: which the end of a session explains,
  // or that somebody has given it up.
  bool anything_missing() const { return failed_ || posted_ != 0; }

  uint64_t chains() const { return chains_; }  // doorbells so far

 private:
  absl::Status PumpSome();
  absl::Status Post();

  static constexpr size_t kChainMax = 64;
  static constexpr int kPollsAtOnce = 256;

  ClientChannel& channel_;
  ReadTicketList waiting_;
  ReadTicketList finished_;
  size_t posted_ = 0;
  bool failed_ = false;
  uint64_t chains_ = 0;
  // Here rather than on the stack, where they would be cleared each time.
  std::array<ReadOp, kChainMax> ops_;
  std::array<ReadCompletion, 16> completions_;
};

}  // namespace kvd
