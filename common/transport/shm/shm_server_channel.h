// One session as its endpoint holds it. Only the endpoint's poller touches it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/admission/admitted_session.h"
#include "common/base/mapped_memory.h"
#include "common/layout/hello.h"
#include "common/transport/server_endpoint.h"
#include "common/transport/shm/descriptor_closer.h"
#include "common/transport/shm/peer_segments.h"
#include "common/transport/shm/ring.h"
#include "common/transport/shm/session_segment.h"

namespace kvd {

// What the acceptor hands to an endpoint.
struct AcceptedSession {
  PeerSocket socket;
  MappedMemory segment;
  SessionLayout layout;
  Hello hello{};
  PeerIdentity peer;
  Role role = Role::kNone;
  AdmittedSession admitted;
};

class ShmServerChannel {
 public:
  ShmServerChannel(ChannelId id, AcceptedSession accepted);

  ChannelId id() const { return id_; }
  int socket() const { return accepted_.socket.get(); }
  const AcceptedSession& accepted() const { return accepted_; }
  PeerSegments& segments() { return segments_; }

  // Takes the next request into `into` (frame_bytes rounded up to 8). InvalidArgument: the client
  // wrote what cannot be, or has more requests outstanding than it has credits.
  absl::StatusOr<bool> TakeRequest(std::byte* into, size_t& length_bytes);
  bool HasRequest() const { return requests_.Ready(); }

  // Writes a reply; false for one that nobody asked for. Wake makes the client look, if it sleeps.
  bool PushReply(const FrameParts& frame);
  void Wake();

  // Takes up to a bounded number of packets from the socket: doorbells and notices of segments.
  // With a `wanted_segment` it goes on until that one is known or the socket is empty (the bound is
  // then more than an honest client's socket holds). Unavailable: the client went away;
  // InvalidArgument: it sent something else, or rang more often than the server has slept.
  absl::Status ReadSocket(uint32_t wanted_segment = 0);

  // Asks the client to ring when it next sends; to be followed by HasRequest. Disarm takes it back.
  void Arm();
  void Disarm();

  // Tells the client why its session ends. The socket's end, which follows, makes it look.
  void WriteReason(const absl::Status& reason);

  // Owned by the endpoint: its place in the list of channels that are polled, whether it is being
  // closed, when it was last seen to do something (in the endpoint's ticks), and whether a reply
  // waits for Flush.
  size_t polled_at = kNotPolled;
  bool closing = false;
  bool unflushed = false;
  uint64_t active_tick = 0;
  static constexpr size_t kNotPolled = ~size_t{0};

 private:
  SessionHeader& header() { return *reinterpret_cast<SessionHeader*>(accepted_.segment.base()); }

  ChannelId id_;
  AcceptedSession accepted_;
  RingConsumer requests_;
  RingProducer replies_;
  PeerSegments segments_;
  uint32_t outstanding_ = 0;
  uint64_t bells_owed_ = 0;
};

}  // namespace kvd
