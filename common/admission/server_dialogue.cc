#include "common/admission/server_dialogue.h"

#include <algorithm>
#include <string>

#include "common/base/string_view.h"
#include "common/base/user_namespace.h"
#include "common/protocol/handshake.h"

namespace kvd {

ServerDialogue::ServerDialogue(Admission& admission, PeerIdentity peer, const ChannelEnds& ends)
    : admission_(admission), peer_(std::move(peer)) {
  said_.transport = peer_.transport;
  said_.ends = ends;
}

ServerDialogue::Step ServerDialogue::Take(std::span<const std::byte> frame) {
  return challenged_ ? TakeAnswer(frame) : TakeHello(frame);
}

void ServerDialogue::Refuse(WelcomeStatus status, std::string_view why) {
  admission_.NoteRefusal(peer_, said_.hello, why);
  welcome_ = MakeRefusal(status, why);
}

bool ServerDialogue::TurnedAway() {
  let_begin_ = true;
  const std::optional<std::string> why = admission_.TurnAway(peer_);
  if (why) Refuse(WelcomeStatus::kFull, *why);
  return why.has_value();
}

ServerDialogue::Step ServerDialogue::TakeHello(std::span<const std::byte> frame) {
  if (const absl::Status parsed = ParseHello(frame, said_.hello); !parsed.ok()) {
    const bool version = absl::IsFailedPrecondition(parsed);
    Refuse(version ? WelcomeStatus::kWrongVersion : WelcomeStatus::kMalformed,
           ToStd(parsed.message()));
    return Step::kRefused;
  }
  if (!let_begin_ && TurnedAway()) return Step::kRefused;
  if (!admission_.WantsProof(peer_, said_.hello)) return Admit();
  if (peer_.transport == "shm" && said_.ends.client.user == kNoId) {
    Refuse(WelcomeStatus::kNotAdmitted, "by shared memory no key from another user namespace");
    return Step::kRefused;
  }
  challenged_ = true;
  said_.challenge.magic = kChallengeMagic;
  said_.challenge.client_queue_pair = said_.ends.client.queue_pair;
  said_.challenge.server_queue_pair = said_.ends.server.queue_pair;
  if (!FillRandom(said_.challenge.nonce).ok()) {
    Refuse(WelcomeStatus::kInternal, "kvd has no random numbers");
    return Step::kRefused;
  }
  return Step::kChallenged;
}

ServerDialogue::Step ServerDialogue::TakeAnswer(std::span<const std::byte> frame) {
  if (const absl::Status parsed = ParseChallengeAnswer(frame, said_.answer); !parsed.ok()) {
    Refuse(WelcomeStatus::kMalformed, ToStd(parsed.message()));
    return Step::kRefused;
  }
  const std::string name(KeyNameOf(said_.answer));
  const std::shared_ptr<const AccessKey> key = admission_.FindKey(name);
  // Where there is none of that name, the work and the answer are the same.
  static const std::string no_secret(kSecretBytesMax, '\0');
  const Proof proof = ClientProof(key != nullptr ? key->secret : no_secret, said_);
  if (!AreSame(proof, said_.answer.proof) || key == nullptr) {
    Refuse(WelcomeStatus::kNotAdmitted, "unknown key or wrong secret; compare the key files");
    return Step::kRefused;
  }
  peer_.key = key;
  return Admit();
}

ServerDialogue::Step ServerDialogue::Admit() {
  welcome_ = admission_.Admit(peer_, said_.hello);
  if (welcome_.status != static_cast<uint32_t>(WelcomeStatus::kAdmitted)) return Step::kRefused;
  session_ = AdmittedSession(admission_, welcome_.session_id);
  return Step::kAdmitted;
}

void ServerDialogue::Seal() {
  if (peer_.key == nullptr) return;
  const Proof proof = ServerProof(peer_.key->secret, said_, welcome_);
  std::copy(proof.begin(), proof.end(), welcome_.proof);
}

}  // namespace kvd
