// Proofs that a side has a key, without the key: HMAC-SHA256 (RFC 2104) over the whole handshake.
//
//   client's:  over "kvd client 2", the transport's name, both ends of the connection, Hello,
//              Challenge, ChallengeAnswer
//   server's:  over "kvd server 2", the same, and Welcome
//
// with the proofs themselves as zeroes. Both nonces are in it, so no proof is worth anything in
// another handshake; both ends, as each side sees them without being told by the other, so none is
// through somebody who stands between and passes on what they say; the client's id and the
// versions, so nobody can change them on the way; and all of Welcome, so a client that knows its
// server's proof knows that the region it is shown is the server's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "common/layout/hello.h"

namespace kvd {

using Proof = std::array<uint8_t, kProofBytes>;

// One end of a connection. Over shared memory `user` alone: the process's effective user, as the
// kernel vouches for it to the other side; who is in between has another. (One of the same user
// could trace either process anyway.) Where the kernel does not say, kNoId, with which no honest
// side makes a proof for itself.
struct ChannelEnd {
  std::array<uint8_t, 16> address{};  // RDMA: IP address (IPv4 mapped into IPv6) or GID
  uint32_t user = 0;
  uint32_t queue_pair = 0;  // RDMA but iWARP: its number
  uint32_t lid = 0;         // InfiniBand without rdma_cm
};
static_assert(sizeof(ChannelEnd) == 28 && std::has_unique_object_representations_v<ChannelEnd>);

struct ChannelEnds {
  ChannelEnd client;
  ChannelEnd server;
};

// What both sides have said, as frames.
struct Transcript {
  std::string_view transport;  // "shm" or "rdma"
  ChannelEnds ends{};
  Hello hello{};
  Challenge challenge{};
  ChallengeAnswer answer{};
};

Proof ClientProof(std::string_view secret, const Transcript& said);
Proof ServerProof(std::string_view secret, const Transcript& said, const Welcome& welcome);

// In a time that does not depend on where they differ.
bool AreSame(std::span<const uint8_t, kProofBytes> a, std::span<const uint8_t, kProofBytes> b);

// Fit for nonces; Internal: the library has no randomness to give.
absl::Status FillRandom(std::span<uint8_t> into);

}  // namespace kvd
