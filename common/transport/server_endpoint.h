// The server's end of a transport: one ServerTransport per kind, with one ServerEndpoint per
// poller.
//
// The transport's own thread accepts, asks Admission and hands each admitted channel to one
// endpoint; from then on only that endpoint's poller touches it. Over RDMA the hello itself arrives
// among the endpoint's messages, so there a handshake ends only while the endpoint is polled, or
// slept on as PrepareToSleep says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/admission/admission.h"
#include "common/layout/hello.h"
#include "common/transport/frame_parts.h"

namespace kvd {

// Names a channel within its endpoint; never reused in the life of the endpoint.
enum class ChannelId : uint64_t {};

struct ServerEvent {
  enum class Kind : uint8_t {
    kOpened,    // a channel was admitted: `hello` and `peer` describe it
    kRequest,   // `frame` is a private copy: the peer cannot change it any more
    kPullDone,  // the pull `pull_id` has ended; `ok` says whether all bytes arrived
    kClosed,    // the channel is gone, its pulls are over; `error` is the cause; the last event of
                // this channel
  };
  Kind kind = Kind::kRequest;
  bool ok = false;
  ChannelId channel{};
  uint64_t pull_id = 0;
  std::span<const std::byte> frame;
  const Hello* hello = nullptr;
  const PeerIdentity* peer = nullptr;
  uint64_t session_id = 0;  // kOpened, like the next
  Role role = Role::kNone;
  const absl::Status* error = nullptr;
};

// Where a peer's value lies, as its request says; nothing in it is trusted.
struct PullSource {
  uint64_t address = 0;
  uint32_t key = 0;
  uint64_t length = 0;
};

// Used by one poller thread only, except where noted.
class ServerEndpoint {
 public:
  virtual ~ServerEndpoint() = default;

  // Takes up to events.size() events; never blocks. Everything that events point to is valid until
  // the next Poll.
  virtual size_t Poll(std::span<ServerEvent> events) = 0;

  // Answers a request of the channel; the credit that the request held goes back with it. At most
  // frame_bytes. A channel that has gone swallows it. Replies may be held back until Flush.
  virtual void Reply(ChannelId channel, const FrameParts& frame) = 0;
  virtual void Flush() = 0;

  // Starts fetching the peer's bytes into `into` (source.length bytes of the region, which stay
  // reserved until kPullDone or kClosed). InvalidArgument: the source cannot be (outside the peer's
  // buffer, unknown key); no event follows then. May complete at once; the event still comes by
  // Poll.
  virtual absl::Status Pull(ChannelId channel, const PullSource& source, std::byte* into,
                            uint64_t pull_id) = 0;

  // Ends the channel; kClosed follows with this cause. The peer can read the reason if the
  // transport can carry it.
  virtual void Close(ChannelId channel, const absl::Status& reason) = 0;

  // Arms wake-ups. True: nothing is pending and the poller may block on event_fd() until it is
  // readable; false: poll again. After waking, the next Poll disarms.
  virtual bool PrepareToSleep() = 0;
  virtual int event_fd() const = 0;
};

class ServerTransport {
 public:
  virtual ~ServerTransport() = default;

  // Begins to accept. One endpoint per poller, in the same order; they outlive Stop.
  virtual absl::Status Start(Admission& admission) = 0;
  virtual ServerEndpoint& endpoint(size_t poller) = 0;

  // Stops accepting; channels live on until their endpoint closes them. Idempotent.
  virtual void StopAccepting() = 0;

  // For logs: where it listens.
  virtual std::string Describe() const = 0;
};

}  // namespace kvd
