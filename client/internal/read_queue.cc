#include "client/internal/read_queue.h"

#include <algorithm>
#include <span>

#include "common/base/status_macros.h"

namespace kvd {
namespace {

constexpr size_t kChainMax = 64;

}  // namespace

absl::Status ReadQueue::Pump() {
  if (!waiting_.empty()) KVD_RETURN_IF_ERROR(Post());
  if (posted_ == 0) return absl::OkStatus();
  ReadCompletion completions[16];
  for (;;) {
    const size_t count = channel_.PollReads(completions);
    for (const ReadCompletion& completion : std::span(completions).first(count)) {
      auto* ticket = reinterpret_cast<ReadTicket*>(completion.id);
      ticket->ok = completion.ok;
      if (ticket->owner != nullptr) {
        finished_.push_back(ticket);
      } else {
        ticket->done = true;
      }
    }
    posted_ -= count;
    if (count < std::size(completions)) break;
  }
  return waiting_.empty() ? absl::OkStatus() : Post();
}

void ReadQueue::GiveUp(ReadTicket& ticket) {
  if (ticket.done) return;
  if (std::erase(waiting_, &ticket) != 0) {
    ticket.done = true;
    ticket.ok = false;
  } else {
    channel_.GiveUpRead(reinterpret_cast<uint64_t>(&ticket));
  }
}

absl::Status ReadQueue::Post() {
  ReadOp ops[kChainMax];
  while (!waiting_.empty()) {
    const size_t count = std::min({waiting_.size(), kChainMax, channel_.reads_max() - posted_});
    if (count == 0) break;
    for (size_t i = 0; i < count; ++i) {
      const ReadTicket& ticket = *waiting_[i];
      ops[i] = ReadOp{ticket.offset, ticket.length, ticket.into, reinterpret_cast<uint64_t>(&ticket)};
    }
    KVD_RETURN_IF_ERROR(channel_.PostReads(std::span(ops).first(count)));
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
    posted_ += count;
    ++chains_;
  }
  return absl::OkStatus();
}

}  // namespace kvd
