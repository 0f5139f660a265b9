// Proofs that a side has a key, without the key: HMAC-SHA256 (RFC 2104) over the whole handshake.
//
//   client's:  over "kvd client 1", the transport's name, Hello, Challenge, ChallengeAnswer
//   server's:  over "kvd server 1", the same, and Welcome
//
// with the proofs themselves as zeroes. Both nonces are in it, so no proof is worth anything in
// another handshake; the queue pairs' numbers, so none is on another connection; the client's id
// and the versions, so nobody can change them on the way; and all of Welcome, so a client that
// knows its server's proof knows that the region it is shown is the server's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "common/layout/hello.h"

namespace kvd {

using Proof = std::array<uint8_t, kProofBytes>;

// What both sides have said, as frames.
struct Transcript {
  std::string_view transport;  // "shm" or "rdma"
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
