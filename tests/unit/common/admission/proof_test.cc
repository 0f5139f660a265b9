// Proofs: the function is HMAC-SHA256 over exactly what the header says, and nothing in the
// handshake can be changed without the proof failing.
#include "common/admission/proof.h"

#include <cstring>
#include <set>
#include <string>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

Transcript SomeTranscript() {
  Transcript said;
  said.transport = "rdma";
  std::memset(static_cast<void*>(&said.ends.client), 0x55, sizeof(said.ends.client));
  std::memset(static_cast<void*>(&said.ends.server), 0x66, sizeof(said.ends.server));
  std::memset(&said.hello, 0x11, sizeof(said.hello));
  std::memset(&said.challenge, 0x22, sizeof(said.challenge));
  std::memset(&said.answer, 0x33, sizeof(said.answer));
  return said;
}

std::string Hex(const Proof& proof) {
  std::string text;
  for (const uint8_t byte : proof) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace

// The expected values come from Python's hmac and hashlib, over the bytes that docs/formats.md
// lists.
TEST_CASE("Proof: what another implementation makes of the same bytes") {
  const Transcript said = SomeTranscript();
  Welcome welcome;
  std::memset(&welcome, 0x44, sizeof(welcome));
  CHECK(Hex(ClientProof("0123456789abcdef", said)) ==
        "b432b473c94a100dc9c252d40174d09ed9ad5293b92d8c19e8e3d5519b7cbaca");
  CHECK(Hex(ServerProof("0123456789abcdef", said, welcome)) ==
        "91c5d385a6f1cfdfd5eaf73918d88a306ae02294a3054d5049db909bb1417688");
}

TEST_CASE("Proof: every byte of the handshake counts, but those of the proof itself") {
  const Proof expected = ClientProof("secret", SomeTranscript());
  std::set<Proof> seen = {expected};
  const auto changes = [&](const Transcript& said) {
    return seen.insert(ClientProof("secret", said)).second;
  };
  const auto for_each_byte = [&](auto member, size_t skip_from, size_t skip_to) {
    for (size_t i = 0; i < sizeof(SomeTranscript().*member); ++i) {
      Transcript said = SomeTranscript();
      reinterpret_cast<uint8_t*>(&(said.*member))[i] ^= 0x80;
      INFO(i);
      CHECK(changes(said) == !(i >= skip_from && i < skip_to));
    }
  };
  for_each_byte(&Transcript::ends, 0, 0);
  for_each_byte(&Transcript::hello, 0, 0);
  for_each_byte(&Transcript::challenge, 0, 0);
  for_each_byte(&Transcript::answer, offsetof(ChallengeAnswer, proof),
                offsetof(ChallengeAnswer, proof) + kProofBytes);
  Transcript over_shm = SomeTranscript();
  over_shm.transport = "shm";
  CHECK(changes(over_shm));
  CHECK(seen.insert(ClientProof("Secret", SomeTranscript())).second);
}

TEST_CASE("Proof: the server's covers its welcome, and is never a client's") {
  const Transcript said = SomeTranscript();
  Welcome welcome{};
  const Proof expected = ServerProof("secret", said, welcome);
  CHECK_FALSE(AreSame(expected, ClientProof("secret", said)));
  for (size_t i = 0; i < sizeof(welcome); ++i) {
    Welcome changed = welcome;
    reinterpret_cast<uint8_t*>(&changed)[i] ^= 1;
    const bool is_proof =
        i >= offsetof(Welcome, proof) && i < offsetof(Welcome, proof) + kProofBytes;
    INFO(i);
    CHECK(AreSame(expected, ServerProof("secret", said, changed)) == is_proof);
  }
}

TEST_CASE("Proof: a difference in any place is one") {
  Proof a{};
  CHECK(AreSame(a, Proof{}));
  for (size_t i = 0; i < a.size(); ++i) {
    Proof b{};
    b[i] = 1;
    CHECK_FALSE(AreSame(a, b));
  }
}

TEST_CASE("Proof: random bytes differ each time") {
  std::set<Proof> seen;
  for (int i = 0; i < 100; ++i) {
    Proof bytes{};
    REQUIRE(FillRandom(bytes).ok());
    CHECK(seen.insert(bytes).second);
  }
}

}  // namespace kvd::test
