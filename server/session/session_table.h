// The sessions of one poller: what the server keeps for each client, and the one way in which it
// all goes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/layout/slot.h"
#include "common/transport/server_endpoint.h"
#include "server/session/session_counters.h"

namespace kvd {

// An item whose memory is kept for a session, until kRelease, the end of the session or of the
// lease.
struct HeldItem {
  uint32_t shard = 0;
  Slot slot = kEmptySlot;
  int64_t lease_ends_ns = 0;  // monotonic
};

struct ServerSession {
  uint64_t session_id = 0;
  uint64_t client_id = 0;
  Role role = Role::kNone;
  std::string client_name;  // "kvcli": as the client calls itself, made harmless
  std::string name;         // "kvcli (pid 4711)", for logs
  SessionCounters counters;
  // When it was last looked at whether it is idle. At first none: between its beginning and the
  // first look there may be no time at all.
  uint64_t requests_looked_at = ~uint64_t{0};
  uint32_t looks_in_vain = 0;  // since it had sent something
  uint64_t pull_bytes = 0;     // on their way
  bool ending = false;         // being closed for what it sent: nothing more of it is executed
  std::optional<HeldItem> held;
  // The statistics, or whatever else the client reads in parts, as it was when it began to, so that
  // all parts belong together.
  std::string text;
};

// Used by one poller thread only.
class SessionTable {
 public:
  // Of an item; a long one has a second more for each 16 MiB, which slow READs take.
  static constexpr int64_t kLeaseNs = 10'000'000'000;
  static int64_t LeaseNs(Slot slot);

  // Takes all memory that the session's life in the table takes. Throws std::bad_alloc; there is no
  // session then.
  void Open(ChannelId channel, const ServerEvent& opened, int64_t now_ns);

  // Of a session that is there. They outlive it for as long as somebody keeps them.
  std::shared_ptr<const SessionCounters> CountersOf(ChannelId channel) const;

  // Null for a channel that has gone.
  ServerSession* Find(ChannelId channel) {
    if (channel == found_channel_ && found_ != nullptr) return found_;
    return Search(channel);
  }

  // Ends a session. What it held is the caller's to release.
  std::optional<HeldItem> Close(ChannelId channel);

  // Notes that the session holds an item from now on. Returns what it held before, which the caller
  // releases: one item a session.
  std::optional<HeldItem> Hold(ChannelId channel, uint32_t shard, Slot slot, int64_t now_ns);
  std::optional<HeldItem> TakeHeld(ChannelId channel);

  // Takes the items whose lease has ended; the caller releases them.
  std::vector<HeldItem> TakeExpired(int64_t now_ns);

  // When TakeExpired will next have something to do; nullopt: nobody holds anything.
  std::optional<int64_t> next_lease_end_ns() const;

  size_t size() const { return sessions_.size(); }

  // `visit` gets each channel and its session, and opens and closes none.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (const auto& [channel, session] : sessions_) visit(channel, *session);
  }

 private:
  ServerSession* Search(ChannelId channel);

  // The last one found: requests come in runs of one channel.
  ChannelId found_channel_{};
  ServerSession* found_ = nullptr;  // null: none
  std::unordered_map<ChannelId, std::shared_ptr<ServerSession>> sessions_;
  std::vector<ChannelId> holders_;  // those that hold an item, in the order in which the leases end
};

}  // namespace kvd
