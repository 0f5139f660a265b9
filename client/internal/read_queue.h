// READs of a session whose region is remote, from whoever needs some: collected, posted as chains under one doorbell each,
// and handed back to whom they belong when they have completed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

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

// One READ. Belongs to whoever submits it, who keeps it and the memory it lands in until it is done: also past a deadline,
// since only then the device will not touch that memory any more. A session that ends ends all of them.
struct ReadTicket {
  RegionOffset offset{};
  uint64_t length = 0;
  std::byte* into = nullptr;  // memory of the channel
  ReadOwner* owner = nullptr;  // null: whoever submitted it looks at `done`
  void* context = nullptr;     // the owner's
  bool done = true;            // one that has an owner: and the owner has been told
  bool ok = false;             // once done: the bytes are there
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
    waiting_.push_back(&ticket);
  }

  // Nobody wants its bytes any more. It is done at once if it was not posted; otherwise soon, however long it is, without
  // being told to anybody but an owner.
  void GiveUp(ReadTicket& ticket);

  // Posts what waits, as far as the channel has room, and takes what has completed. On an error, which is the channel's,
  // what waits stays waiting.
  absl::Status Pump();

  // Tells the owners of those that are done. True if there were any: they may have submitted more, to be posted before
  // anybody waits.
  bool Dispatch() {
    const bool any = !finished_.empty();
    while (!finished_.empty()) {
      ReadTicket* ticket = finished_.front();
      finished_.pop_front();
      ticket->done = true;
      ticket->owner->OnRead(*ticket);
    }
    return any;
  }

  // READs have completed whose owners have not been told: nothing will wake anybody for them again.
  bool anything_to_dispatch() const { return !finished_.empty(); }

  uint64_t chains() const { return chains_; }  // doorbells so far

 private:
  absl::Status Post();

  ClientChannel& channel_;
  std::deque<ReadTicket*> waiting_;
  std::deque<ReadTicket*> finished_;
  size_t posted_ = 0;
  uint64_t chains_ = 0;
};

}  // namespace kvd
