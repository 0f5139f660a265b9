// The order of one session's writes to one key, where the value of one of them is pulled.
//
// A pull takes its time, and requests that come meanwhile are executed: those for other keys, that
// is. From the moment at which a pulled write begins until it is answered its key is busy for its
// session, and writes that the session sends for it wait; then they go one after another, each when
// the one before it is answered.
//
// Everything else is in order by itself. A poller executes a channel's requests as they come, and
// what it forwards to the owner of the key arrives in the order of posting. Of a client's sessions
// the owner executes nothing of an earlier one once it has met a write of a later one
// (server/operations/reply_cache.h), so a pull of a session that broke holds up nobody.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "common/transport/server_endpoint.h"
#include "server/poller/forward.h"

namespace kvd {

// Used by one poller thread only. Never allocates but in Begin. How many wait is bounded by the
// credits of the sessions.
class WriteOrder {
 public:
  // No key is busy, for any session.
  bool empty() const { return keys_.empty(); }
  bool IsBusy(ChannelId channel, uint64_t hash) const { return keys_.contains({channel, hash}); }

  // A pulled write begins: the key, not busy before, is busy from now on. Throws std::bad_alloc.
  void Begin(ChannelId channel, uint64_t hash) { keys_.try_emplace({channel, hash}); }

  // `forward`, of a busy key, waits behind all that do so already.
  void Wait(Forward& forward);

  // The write under way has been answered. The one whose turn it is now; null: none waits, and the
  // key is busy no more.
  Forward* Next(ChannelId channel, uint64_t hash);

  // The channel has gone: none of its keys is busy any more, and `take` gets all that waited.
  template <typename Take>
  void Drop(ChannelId channel, const Take& take) {
    std::erase_if(keys_, [&](const auto& key) {
      if (key.first.first != channel) return false;
      for (Forward* at = key.second.first; at != nullptr;)
        take(*std::exchange(at, at->next_waiting));
      return true;
    });
  }

 private:
  struct Waiting {
    Forward* first = nullptr;
    Forward* last = nullptr;
  };

  std::map<std::pair<ChannelId, uint64_t>, Waiting> keys_;
};

}  // namespace kvd
