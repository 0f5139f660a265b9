#include "common/admission/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstring>
#include <string>
#include <type_traits>

#include "common/base/check.h"

namespace kvd {
namespace {

// Names are padded, so that nothing can be moved from one part to the next.
constexpr size_t kNameBytes = 16;

void AppendName(std::string_view name, std::string& bytes) {
  bytes.append(name.substr(0, kNameBytes));
  bytes.append(kNameBytes - std::min(name.size(), kNameBytes), '\0');
}

template <typename Frame>
void AppendFrame(const Frame& frame, std::string& bytes) {
  static_assert(std::has_unique_object_representations_v<Frame>);
  bytes.append(reinterpret_cast<const char*>(&frame), sizeof(frame));
}

std::string BytesOf(std::string_view label, const Transcript& said) {
  std::string bytes;
  AppendName(label, bytes);
  AppendName(said.transport, bytes);
  AppendFrame(said.ends.client, bytes);
  AppendFrame(said.ends.server, bytes);
  AppendFrame(said.hello, bytes);
  AppendFrame(said.challenge, bytes);
  ChallengeAnswer answer = said.answer;
  std::memset(answer.proof, 0, sizeof(answer.proof));
  AppendFrame(answer, bytes);
  return bytes;
}

Proof Mac(std::string_view secret, const std::string& bytes) {
  Proof proof;
  unsigned length = 0;
  const auto* const made = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                                proof.data(), &length);
  KVD_CHECK(made != nullptr && length == proof.size());
  return proof;
}

}  // namespace

Proof ClientProof(std::string_view secret, const Transcript& said) {
  return Mac(secret, BytesOf("kvd client 2", said));
}

Proof ServerProof(std::string_view secret, const Transcript& said, const Welcome& welcome) {
  std::string bytes = BytesOf("kvd server 2", said);
  Welcome unproved = welcome;
  std::memset(unproved.proof, 0, sizeof(unproved.proof));
  AppendFrame(unproved, bytes);
  return Mac(secret, bytes);
}

bool AreSame(std::span<const uint8_t, kProofBytes> a, std::span<const uint8_t, kProofBytes> b) {
  return CRYPTO_memcmp(a.data(), b.data(), kProofBytes) == 0;
}

absl::Status FillRandom(std::span<uint8_t> into) {
  if (RAND_bytes(into.data(), static_cast<int>(into.size())) == 1) return absl::OkStatus();
  return absl::InternalError("no random bytes to be had from OpenSSL");
}

}  // namespace kvd
