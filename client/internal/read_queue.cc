#include "client/internal/read_queue.h"

#include <algorithm>
#include <span>

#include "common/base/status_macros.h"

namespace kvd {

absl::Status ReadQueue::PumpSome() {
  if (!waiting_.empty()) KVD_RETURN_IF_ERROR(Post());
  while (posted_ != 0) {
    const size_t count = channel_.PollReads(completions_);
    for (const ReadCompletion& completion : std::span(completions_).first(count)) {
      auto& ticket = *reinterpret_cast<ReadTicket*>(completion.id);
      ticket.ok = completion.ok;
      failed_ = failed_ || !completion.ok;
      if (ticket.owner != nullptr) {
        finished_.PushBack(ticket);
      } else {
        ticket.done = true;
      }
    }
    posted_ -= count;
    if (count < completions_.size()) break;
  }
  return waiting_.empty() ? absl::OkStatus() : Post();
}

void ReadQueue::GiveUp(ReadTicket& ticket) {
  if (ticket.done) return;
  if (waiting_.Remove(ticket)) {
    ticket.done = true;
    ticket.ok = false;
  } else {
    channel_.GiveUpRead(reinterpret_cast<uint64_t>(&ticket));
  }
}

absl::Status ReadQueue::Post() {
  while (!waiting_.empty()) {
    const size_t room = std::min(kChainMax, channel_.reads_max() - posted_);
    size_t count = 0;
    ReadTicket* ticket = &waiting_.first();
    for (; ticket != nullptr && count < room; ticket = ticket->next) {
      ops_[count++] =
          ReadOp{ticket->offset, ticket->length, ticket->into, reinterpret_cast<uint64_t>(ticket)};
    }
    if (count == 0) break;
    KVD_RETURN_IF_ERROR(channel_.PostReads(std::span(ops_).first(count)));
    waiting_.DropBefore(ticket);
    posted_ += count;
    ++chains_;
  }
  return absl::OkStatus();
}

}  // namespace kvd
