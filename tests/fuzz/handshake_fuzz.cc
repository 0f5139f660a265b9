// Every frame of a handshake, to either side, in any order: nobody who does not know the secret
// gets in or is believed, what is let through has numbers within their limits, and nothing is read
// beyond a frame.
#include <memory>
#include <optional>
#include <string>

#include "common/admission/client_dialogue.h"
#include "common/admission/server_dialogue.h"
#include "common/layout/frames.h"
#include "common/protocol/handshake.h"
#include "common/transport/verbs/wire.h"
#include "tests/fuzz/fuzz.h"

namespace kvd::fuzz {
namespace {

std::shared_ptr<const AccessKey> TheKey() {
  return std::make_shared<const AccessKey>(
      AccessKey{.name = "app", .role = Role::kRead, .secret = std::string(32, 's')});
}

class Gate final : public Admission {
 public:
  bool WantsProof(const PeerIdentity& /*peer*/, const Hello& /*hello*/) override { return true; }
  std::shared_ptr<const AccessKey> FindKey(std::string_view name) override {
    return name == "app" ? TheKey() : nullptr;
  }
  Welcome Admit(const PeerIdentity& peer, const Hello& /*hello*/) override {
    Require(peer.key == nullptr, "a client without the secret is not let in");
    return MakeRefusal(WelcomeStatus::kNotAdmitted, "wants a key");
  }
  void Gone(uint64_t /*session_id*/) override {}
};

void ToServer(Feed& feed) {
  Gate gate;
  ServerDialogue dialogue(gate, PeerIdentity{.transport = "shm", .address = "/s"}, ChannelEnds());
  while (!feed.empty()) {
    const Exactly frame(feed.Bytes(feed.Take<uint8_t>()));
    const ServerDialogue::Step step = dialogue.Take(frame.bytes());
    Require(step != ServerDialogue::Step::kAdmitted, "a client without the secret is not let in");
    if (step != ServerDialogue::Step::kChallenged) return;
  }
}

void ToClient(Feed& feed) {
  Hello hello{};
  ClientDialogue dialogue("rdma", ChannelEnds(), hello, TheKey());
  while (!feed.empty()) {
    const Exactly frame(feed.Bytes(feed.Take<uint8_t>()));
    const absl::StatusOr<bool> taken = dialogue.Take(frame.bytes());
    Require(!taken.ok() || !*taken, "a server without the secret is not believed");
    if (!taken.ok()) return;
  }
}

void ToClientWithoutKey(Feed& feed) {
  Hello hello{};
  ClientDialogue dialogue("shm", ChannelEnds(), hello, nullptr);
  const Exactly frame(feed.Rest());
  const absl::StatusOr<bool> taken = dialogue.Take(frame.bytes());
  if (!taken.ok() || !*taken) return;
  const Geometry geometry = GeometryOf(dialogue.welcome());
  Require(CheckGeometry(geometry).ok(), "an admission has a geometry that can be");
  Require(geometry.Contains(RegionOffset{geometry.directory_offset},
                            uint64_t{geometry.directory_entries} * sizeof(uint64_t)),
          "the directory lies in the region");
}

void ParseAll(Feed& feed) {
  const Exactly frame(feed.Rest());
  Hello hello{};
  (void)ParseHello(frame.bytes(), hello);
  Challenge challenge{};
  (void)IsChallenge(frame.bytes());
  (void)ParseChallenge(frame.bytes(), challenge);
  ChallengeAnswer answer{};
  if (ParseChallengeAnswer(frame.bytes(), answer).ok()) {
    Require(KeyNameOf(answer).size() <= sizeof answer, "a name lies in its answer");
  }
  verbs::ConnectData connect{};
  (void)verbs::ParseConnectData(frame.bytes(), connect);
  Require(!verbs::RejectStatus(frame.bytes()).ok(), "a rejection is an error");
  Require(!verbs::CloseStatus(frame.bytes()).ok(), "an end is an error");
  verbs::MessageKind kind{};
  std::span<const std::byte> body;
  if (verbs::ParseMessage(frame.bytes(), kind, body).ok()) {
    Require(body.size() + sizeof(verbs::MessagePrefix) == frame.bytes().size(),
            "a body fills its message");
  }
}

}  // namespace
}  // namespace kvd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kvd::fuzz::Feed feed(data, size);
  switch (feed.Below(4)) {
    case 0:
      kvd::fuzz::ToServer(feed);
      break;
    case 1:
      kvd::fuzz::ToClient(feed);
      break;
    case 2:
      kvd::fuzz::ToClientWithoutKey(feed);
      break;
    default:
      kvd::fuzz::ParseAll(feed);
  }
  return 0;
}
