// The client's end of one session. One object per client object; used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/hello.h"
#include "common/layout/units.h"
#include "common/transport/frame_parts.h"
#include "common/transport/shared_pages.h"

namespace kvd {

// Memory that READs may land in and that the server may pull from. Valid until it is given back
// with Free or the channel is destroyed; then also what was allocated with it goes, while
// registered pages stay their owner's.
struct TransferBuffer {
  std::span<std::byte> bytes;
  uint64_t address = 0;  // what a request's pull_address counts from
  uint32_t key = 0;      // what a request's pull_key says
};

// One one-sided READ: region [offset, offset + length) into `into`, which lies in a TransferBuffer
// of this channel (a channel with a window() accepts any memory). `offset` and `length` are
// multiples of 8.
struct ReadOp {
  RegionOffset offset{};
  uint64_t length = 0;
  std::byte* into = nullptr;
  uint64_t id = 0;  // comes back in the completion
};

struct ReadCompletion {
  uint64_t id = 0;
  // False: the bytes are undefined. Unless the READ was given up, the session is broken; status()
  // says why.
  bool ok = false;
};

class ClientChannel {
 public:
  virtual ~ClientChannel() = default;
  ClientChannel(const ClientChannel&) = delete;
  ClientChannel& operator=(const ClientChannel&) = delete;

  // How the session was admitted; checked by ParseWelcome.
  const Welcome& welcome() const { return welcome_; }

  // The region, where it is mapped into this process: readers load from it (RacyCopy) instead of
  // posting READs, and look at the lifeline in its superblock before they believe what they loaded.
  // Empty where the region is remote.
  std::span<const std::byte> window() const { return window_; }

  // Where the region is mapped, not 0 once the server has ended the session: readers look at it
  // beside the lifeline, since a session that was ended is not to read on. Never null.
  const uint32_t* ended() const { return ended_; }

  // Ok while the session lives; afterwards the first cause, for ever. Never blocks. Unavailable:
  // the server went away or closed the session (connect again); DataLoss: the server broke the
  // protocol.
  virtual absl::Status status() = 0;

  // Allocates memory for READs and pulls, page-aligned. ResourceExhausted names limit and need.
  virtual absl::StatusOr<TransferBuffer> Allocate(size_t bytes) = 0;
  // The same with memory that is there already, all of it. The channel keeps the pages as long as
  // it needs them.
  virtual absl::StatusOr<TransferBuffer> Register(std::shared_ptr<SharedPages> pages) = 0;
  // Gives either back. READs that may still land in it are waited for, or end with the session.
  virtual void Free(const TransferBuffer& buffer) = 0;

  // READs that may be outstanding at once, at least 1.
  virtual size_t reads_max() const = 0;

  // Posts all of `ops` as one chain. Nothing is posted on an error: ResourceExhausted if fewer than
  // ops.size() READs are free (poll first), InvalidArgument for an op outside the region, otherwise
  // status().
  virtual absl::Status PostReads(std::span<const ReadOp> ops) = 0;

  // The READ with this id is not wanted any more: no more of it is fetched than is under way, so
  // that a long one does not stand in the way of others. It still completes, and until then may
  // land in its memory. Ids of READs that are not outstanding are ignored. Never blocks.
  virtual void GiveUpRead(uint64_t id) = 0;

  // Takes completions that are there; never blocks.
  virtual size_t PollReads(std::span<ReadCompletion> completions) = 0;

  // Sends one request, consuming a credit. ResourceExhausted: no credit is free (take a reply
  // first); InvalidArgument: longer than welcome().frame_bytes. On an error nothing was sent. Never
  // blocks.
  virtual absl::Status Send(const FrameParts& frame) = 0;

  // The next reply, empty if none is there. Valid until the next call of PollReply or Send. Taking
  // it returns its credit. Never blocks.
  virtual std::span<const std::byte> PollReply() = 0;

  // Blocks until there may be a reply or completion to poll, the session has ended, or the
  // monotonic clock passes `deadline_ns`. Spins before it sleeps. DeadlineExceeded, or status().
  // The server's death ends the wait at once.
  virtual absl::Status Wait(int64_t deadline_ns) = 0;

  // For a caller that sleeps in an event loop of its own instead. PrepareToSleep arms the wake-ups;
  // true: nothing is there to poll, and one of `event_fds` becomes readable when there is, or when
  // the session ends; false: poll first. After sleeping, FinishSleep takes what made them readable,
  // before anything is polled. None of them blocks. The descriptors are the channel's, as long as
  // it lives; at most kEventFdsMax.
  static constexpr size_t kEventFdsMax = 4;
  virtual bool PrepareToSleep() = 0;
  virtual void FinishSleep() = 0;
  virtual std::vector<int> event_fds() const = 0;

 protected:
  ClientChannel() = default;
  Welcome welcome_{};
  std::span<const std::byte> window_;
  static constexpr uint32_t kNotEnded = 0;
  const uint32_t* ended_ = &kNotEnded;
};

}  // namespace kvd
