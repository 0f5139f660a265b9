#include "server/poller/write_order.h"

namespace kvd {

void WriteOrder::Wait(Forward& forward) {
  Waiting& waiting = keys_.find({forward.channel, forward.hash})->second;
  forward.ordered = true;
  forward.next_waiting = nullptr;
  (waiting.first == nullptr ? waiting.first : waiting.last->next_waiting) = &forward;
  waiting.last = &forward;
}

Forward* WriteOrder::Next(ChannelId channel, uint64_t hash) {
  const auto key = keys_.find({channel, hash});
  if (key == keys_.end()) return nullptr;
  Forward* const next = key->second.first;
  if (next == nullptr) {
    keys_.erase(key);
  } else {
    key->second.first = next->next_waiting;
  }
  return next;
}

}  // namespace kvd
