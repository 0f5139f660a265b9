// One connection as its endpoint holds it, from before its hello until after its end. Only the
// endpoint's poller touches it.
//
//   kHello --hello arrives--> kAdmitting --admitted--> kOpen
//      |   <--is to prove a key--/ |  \--refused--\       |
//      +------- peer's fault, Close, timeouts -----+-----+
//                                                  v
//   kNotifying  a last message (welcome that refuses, closing notice) is under way, for a bounded
//   time
//                                                  v
//   kDraining   the queue pair is in error; everything posted is being flushed
//                                                  v
//   gone        nothing of it is under way: kClosed is told, the acceptor destroys the rest
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/layout/hello.h"
#include "common/admission/admitted_session.h"
#include "common/transport/server_endpoint.h"
#include "common/transport/verbs/queue_pair.h"
#include "common/transport/verbs/send_queue.h"

namespace kvd::verbs {

// A value on its way from a client's buffer to its place.
struct PullJob {
  uint64_t id = 0;
  uint64_t address = 0;
  uint32_t key = 0;
  uint64_t length = 0;
  std::byte* into = nullptr;
  uint64_t posted_bytes = 0;
  uint32_t under_way = 0;  // READs
};

// How long a peer may take to acknowledge the last message, and a device to flush a queue.
inline constexpr int64_t kNotifyNs = 500'000'000;
inline constexpr int64_t kDrainNs = 1'000'000'000;
inline constexpr uint32_t kPullReadsMax = 8;  // of one channel, under way at once

// What a send request was, in its cookie; a message has its slot there.
inline constexpr uint64_t kPullCookie = ~uint64_t{0};
inline constexpr uint64_t kKeepAliveCookie = kPullCookie - 1;
inline constexpr uint64_t kMarkerCookie = kPullCookie - 2;

struct VerbsServerChannel {
  enum class State : uint8_t { kHello, kAdmitting, kOpen, kNotifying, kDraining, kGone };

  // A channel's send requests: the binding of its window, its replies, READs of pulls, and its last
  // words: the end of the window, refusal or notice, keep-alive, the marker behind which nothing is
  // left.
  static constexpr uint32_t SendsMax(uint32_t credits) { return 2 * credits + kPullReadsMax + 10; }
  static constexpr uint32_t kReservedSends = 4;

  VerbsServerChannel(ChannelId its_id, std::shared_ptr<QueuePair> its_qp, uint32_t credits_of_queue,
                     uint32_t reads)
      : id(its_id),
        qp(std::move(its_qp)),
        qp_number(qp->number()),
        sends(SendsMax(credits_of_queue), 4),
        queue_credits(credits_of_queue),
        reads_max(reads) {}

  bool alive() const { return state < State::kNotifying; }

  const ChannelId id;
  std::shared_ptr<QueuePair> qp;
  const uint32_t qp_number;
  SendQueue sends;
  const uint32_t queue_credits;  // that the queue was made for
  const uint32_t reads_max;      // under way at once

  State state = State::kHello;
  bool challenged = false;   // what is awaited is an answer, not a hello
  bool told_opened = false;  // so it is to be told that it has closed
  bool unflushed = false;
  bool keep_alive_under_way = false;
  bool heard = false;  // since the last tick
  uint32_t credits = 0;
  uint32_t outstanding = 0;  // requests taken and not answered
  uint32_t granted = 1;      // receives of the pool: the hello's, later the credits'
  uint32_t reads_under_way = 0;
  int64_t deadline_ns = 0;  // of kNotifying and kDraining
  absl::Status cause;

  Hello hello{};
  PeerIdentity peer;
  AdmittedSession admitted;
  uint32_t window_key = 0;  // by which the peer reads; 0: by the region's key
  std::deque<PullJob> pulls;  // in the order in which they were asked for
};

}  // namespace kvd::verbs
