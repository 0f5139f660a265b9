// The server's side of a handshake, from the client's first frame to Welcome. No I/O: a transport
// gives it the frames and sends what it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "common/admission/access_rules.h"
#include "common/admission/admission.h"
#include "common/admission/admitted_session.h"
#include "common/admission/proof.h"
#include "common/layout/hello.h"

namespace kvd {

class ServerDialogue {
 public:
  // `ends`: as this side sees them.
  ServerDialogue(Admission& admission, PeerIdentity peer, const ChannelEnds& ends);

  enum class Step {
    kChallenged,  // send challenge(), and give what the client answers
    kRefused,     // send welcome() and end; it has been counted
    kAdmitted,    // fill in the transport's parts of welcome(), Seal, send it
  };
  // Asks now, rather than with the first frame, whether the client is to be turned away. True: send
  // welcome() and end; it has been counted.
  bool TurnedAway();

  // Judges the client's next frame, whatever is in it. Not after kRefused or kAdmitted.
  Step Take(std::span<const std::byte> frame);

  // It has been sent a challenge, and owes the answer.
  bool challenged() const { return challenged_; }
  const Hello& hello() const { return said_.hello; }
  const Challenge& challenge() const { return said_.challenge; }
  Welcome& welcome() { return welcome_; }
  const PeerIdentity& peer() const { return peer_; }

  // After kAdmitted. Puts the proof into welcome(), of which nothing may be changed afterwards.
  void Seal();
  AdmittedSession TakeSession() { return std::move(session_); }
  // The transport cannot serve it, whoever it is, or does not wait for it any more: welcome() is
  // that refusal now, and it has been counted.
  void Refuse(WelcomeStatus status, std::string_view why);

 private:
  Step TakeHello(std::span<const std::byte> frame);
  Step TakeAnswer(std::span<const std::byte> frame);
  Step Admit();

  Admission& admission_;
  PeerIdentity peer_;
  Transcript said_;
  bool let_begin_ = false;  // TurnedAway has been asked
  bool challenged_ = false;
  Welcome welcome_{};
  AdmittedSession session_;
};

}  // namespace kvd
