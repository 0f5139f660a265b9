#include "common/admission/client_dialogue.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/protocol/handshake.h"

namespace kvd {

ClientDialogue::ClientDialogue(std::string_view transport, const ChannelEnds& ends,
                               const Hello& hello, std::shared_ptr<const AccessKey> key)
    : key_(std::move(key)) {
  said_.transport = transport;
  said_.ends = ends;
  said_.hello = hello;
  if (key_ != nullptr) said_.hello.feature_bits |= kFeatureKey;
}

absl::StatusOr<bool> ClientDialogue::Take(std::span<const std::byte> frame) {
  if (IsChallenge(frame)) {
    KVD_RETURN_IF_ERROR(Answer(frame));
    return false;
  }
  KVD_RETURN_IF_ERROR(ParseWelcome(frame, welcome_));
  if (key_ != nullptr) KVD_RETURN_IF_ERROR(CheckProof());
  return true;
}

absl::Status ClientDialogue::Answer(std::span<const std::byte> frame) {
  if (key_ == nullptr || answered_) {
    return absl::DataLossError("the server sent a challenge that nobody asked for");
  }
  KVD_RETURN_IF_ERROR(ParseChallenge(frame, said_.challenge));
  if (said_.challenge.client_queue_pair != said_.ends.client.queue_pair ||
      said_.challenge.server_queue_pair != said_.ends.server.queue_pair) {
    return absl::PermissionDeniedError(
        "the server's challenge is of another connection: something stands between");
  }
  answered_ = true;
  ChallengeAnswer& answer = said_.answer;
  answer = {};
  answer.magic = kChallengeAnswerMagic;
  key_->name.copy(answer.key_name, sizeof(answer.key_name) - 1);
  KVD_RETURN_IF_ERROR(FillRandom(answer.nonce));
  const Proof proof = ClientProof(key_->secret, said_);
  std::copy(proof.begin(), proof.end(), answer.proof);
  return absl::OkStatus();
}

absl::Status ClientDialogue::CheckProof() const {
  if (!answered_) {
    return absl::PermissionDeniedError(
        "the server asked for no key, so it cannot be told from an impostor; if it is a kvd "
        "without --keys, "
        "connect without a key");
  }
  if (!AreSame(ServerProof(key_->secret, said_, welcome_),
               std::span<const uint8_t, kProofBytes>(welcome_.proof))) {
    return absl::PermissionDeniedError(
        "the server did not prove that it has this client's key: it is not the kvd that this key "
        "is for");
  }
  return absl::OkStatus();
}

}  // namespace kvd
