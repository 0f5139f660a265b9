// Both sides of the handshake against each other, and each against whoever lies: nobody gets in, or
// is believed, without the key; nothing of an earlier handshake helps.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/admission/client_dialogue.h"
#include "common/admission/server_dialogue.h"
#include "common/base/random.h"
#include "common/base/user_namespace.h"
#include "common/layout/frames.h"
#include "common/protocol/handshake.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;
using Step = ServerDialogue::Step;

// A server's decisions, as far as the dialogue needs them.
class Gate final : public Admission {
 public:
  explicit Gate(std::vector<AccessKey> keys) : keys_(std::move(keys)) {}

  bool WantsProof(const PeerIdentity&, const Hello& hello) override {
    return !keys_.empty() && (hello.feature_bits & kFeatureKey) != 0;
  }
  std::shared_ptr<const AccessKey> FindKey(std::string_view name) override {
    for (const AccessKey& key : keys_) {
      if (key.name == name) return std::make_shared<const AccessKey>(key);
    }
    return nullptr;
  }
  Welcome Admit(const PeerIdentity& peer, const Hello&) override {
    if (!keys_.empty() && peer.key == nullptr) {
      CountRefusal();
      return MakeRefusal(WelcomeStatus::kNotAdmitted, "wants a key");
    }
    ++live;
    Welcome welcome{};
    welcome.magic = kWelcomeMagic;
    welcome.version = kProtocolVersion;
    welcome.version_min = kProtocolVersion;
    welcome.incarnation = 7;
    welcome.region_bytes = 64 << 20;
    welcome.bucket_bytes = 1024;
    welcome.shard_count = 2;
    welcome.directory_entries = 64;
    welcome.directory_offset = 4096;
    welcome.credits = 16;
    welcome.frame_bytes = kFrameBytesDefault;
    welcome.max_value_bytes = 64 << 20;
    welcome.session_id = 1;
    const Role role = peer.key == nullptr ? Role::kReadWrite : peer.key->role;
    welcome.role = static_cast<uint32_t>(role);
    return welcome;
  }
  void Gone(uint64_t) override { --live; }
  void CountRefusal() override { ++refusals; }

  int live = 0;
  int refusals = 0;

 private:
  std::vector<AccessKey> keys_;
};

const AccessKey kApp{"app", Role::kRead, "sixteen bytes..."};
const AccessKey kOps{"ops", Role::kAdmin, "sixteen others.."};

Hello SomeHello() {
  Hello hello{};
  hello.magic = kHelloMagic;
  hello.version_min = hello.version_max = kProtocolVersion;
  hello.client_id = 42;
  return hello;
}

std::shared_ptr<const AccessKey> Key(const AccessKey& key) {
  return std::make_shared<const AccessKey>(key);
}

PeerIdentity Over(const std::string& transport) {
  PeerIdentity peer;
  peer.transport = transport;
  return peer;
}

ChannelEnds QueuePairs(uint32_t client, uint32_t server) {
  ChannelEnds ends;
  ends.client.queue_pair = client;
  ends.server.queue_pair = server;
  return ends;
}

ChannelEnds Users(uint32_t client, uint32_t server) {
  ChannelEnds ends;
  ends.client.user = client;
  ends.server.user = server;
  return ends;
}

ChannelEnds Hosts(uint8_t client, uint8_t server) {
  ChannelEnds ends;
  ends.client.address.back() = client;
  ends.server.address.back() = server;
  return ends;
}

template <typename Frame>
std::span<const std::byte> Bytes(const Frame& frame) {
  return std::as_bytes(std::span(&frame, 1));
}

// What the client makes of it all.
absl::StatusOr<bool> Shake(ClientDialogue& client, ServerDialogue& server) {
  if (server.Take(Bytes(client.hello())) == Step::kChallenged) {
    absl::StatusOr<bool> asked = client.Take(Bytes(server.challenge()));
    if (!asked.ok()) return asked;
    REQUIRE_FALSE(*asked);
    server.Take(Bytes(client.answer()));
  }
  server.Seal();
  return client.Take(Bytes(server.welcome()));
}

}  // namespace

TEST_CASE("Dialogue: without keys on either side there is no challenge") {
  Gate gate({});
  ClientDialogue client("shm", {}, SomeHello(), nullptr);
  ServerDialogue server(gate, Over("shm"), {});
  CHECK(*Shake(client, server));
  CHECK(client.welcome().role == static_cast<uint32_t>(Role::kReadWrite));
  CHECK(gate.live == 1);
}

TEST_CASE("Dialogue: with the key the client is in, in the key's role, over any transport") {
  for (const char* transport : {"shm", "rdma"}) {
    for (const AccessKey& key : {kApp, kOps}) {
      Gate gate({kApp, kOps});
      ClientDialogue client(transport, QueuePairs(3, 4), SomeHello(), Key(key));
      ServerDialogue server(gate, Over(transport), QueuePairs(3, 4));
      CHECK(*Shake(client, server));
      CHECK(server.peer().key->name == key.name);
      CHECK(client.welcome().role == static_cast<uint32_t>(key.role));
      CHECK(gate.live == 1);
      server.TakeSession();
      CHECK(gate.live == 0);
    }
  }
}

TEST_CASE("Dialogue: a wrong secret and a key that is not there are refused in the same words") {
  std::string words;
  for (const AccessKey& key : {AccessKey{"app", Role::kRead, "sixteen bytes.,."},
                               AccessKey{"unknown", Role::kRead, "sixteen bytes..."}}) {
    Gate gate({kApp, kOps});
    ClientDialogue client("shm", {}, SomeHello(), Key(key));
    ServerDialogue server(gate, Over("shm"), {});
    const absl::StatusOr<bool> admitted = Shake(client, server);
    KVD_REQUIRE_CODE(admitted, kPermissionDenied);
    CHECK(gate.live == 0);
    CHECK(gate.refusals == 1);
    if (words.empty()) words = MessageOf(admitted.status());
    CHECK(MessageOf(admitted.status()) == words);
    // Of the region nothing has been said.
    const Welcome expected = [&] {
      Welcome refusal = MakeRefusal(WelcomeStatus::kNotAdmitted, server.welcome().text);
      return refusal;
    }();
    CHECK(std::memcmp(&expected, &server.welcome(), sizeof(expected)) == 0);
  }
}

TEST_CASE("Dialogue: a client without a key is refused by a server that wants one") {
  Gate gate({kApp});
  ClientDialogue client("rdma", {}, SomeHello(), nullptr);
  ServerDialogue server(gate, Over("rdma"), {});
  KVD_REQUIRE_CODE(Shake(client, server), kPermissionDenied);
  CHECK(gate.refusals == 1);
}

TEST_CASE("Dialogue: a client with a key does not talk to a server that asks for none") {
  Gate gate({});
  ClientDialogue client("shm", {}, SomeHello(), Key(kApp));
  ServerDialogue server(gate, Over("shm"), {});
  const absl::StatusOr<bool> admitted = Shake(client, server);
  KVD_REQUIRE_CODE(admitted, kPermissionDenied);
  CHECK_THAT(MessageOf(admitted.status()), Contains("without --keys"));
}

TEST_CASE("Dialogue: a server that does not have the key is found out") {
  // It knows the name, and lets in whoever comes.
  Gate real({kApp});
  ClientDialogue client("shm", {}, SomeHello(), Key(kApp));
  ServerDialogue server(real, Over("shm"), {});
  REQUIRE(server.Take(Bytes(client.hello())) == Step::kChallenged);
  REQUIRE_FALSE(*client.Take(Bytes(server.challenge())));
  REQUIRE(server.Take(Bytes(client.answer())) == Step::kAdmitted);

  Welcome unproved = server.welcome();
  KVD_REQUIRE_CODE(client.Take(Bytes(unproved)), kPermissionDenied);
  // Nor can anything be changed in a welcome that is proved.
  server.Seal();
  Welcome changed = server.welcome();
  changed.region_key ^= 1;
  KVD_REQUIRE_CODE(client.Take(Bytes(changed)), kPermissionDenied);
  CHECK(*client.Take(Bytes(server.welcome())));
}

TEST_CASE("Dialogue: an answer is good for one challenge, one connection and one transport only") {
  Gate gate({kApp});
  ClientDialogue client("rdma", QueuePairs(3, 4), SomeHello(), Key(kApp));
  ServerDialogue first(gate, Over("rdma"), QueuePairs(3, 4));
  REQUIRE(first.Take(Bytes(client.hello())) == Step::kChallenged);
  REQUIRE_FALSE(*client.Take(Bytes(first.challenge())));
  const ChallengeAnswer recorded = client.answer();

  ServerDialogue again(gate, Over("rdma"), QueuePairs(3, 4));
  REQUIRE(again.Take(Bytes(client.hello())) == Step::kChallenged);
  CHECK(again.Take(Bytes(recorded)) == Step::kRefused);

  // The same challenge, passed on by somebody between.
  ClientDialogue victim("rdma", QueuePairs(5, 6), SomeHello(), Key(kApp));
  ServerDialogue third(gate, Over("rdma"), QueuePairs(7, 8));
  REQUIRE(third.Take(Bytes(victim.hello())) == Step::kChallenged);
  KVD_REQUIRE_CODE(victim.Take(Bytes(third.challenge())), kPermissionDenied);
  Challenge forged = third.challenge();
  forged.client_queue_pair = 5;
  forged.server_queue_pair = 6;
  ClientDialogue deceived("rdma", QueuePairs(5, 6), SomeHello(), Key(kApp));
  REQUIRE_FALSE(*deceived.Take(Bytes(forged)));
  CHECK(third.Take(Bytes(deceived.answer())) == Step::kRefused);

  ClientDialogue over_shm("shm", {}, SomeHello(), Key(kApp));
  ServerDialogue over_rdma(gate, Over("rdma"), {});
  KVD_REQUIRE_CODE(Shake(over_shm, over_rdma), kPermissionDenied);

  // And an answer that somebody gives for another client.
  ClientDialogue other("rdma", {}, SomeHello(), Key(kApp));
  ServerDialogue server(gate, Over("rdma"), {});
  Hello changed = other.hello();
  changed.client_id ^= 1;
  REQUIRE(server.Take(Bytes(changed)) == Step::kChallenged);
  REQUIRE_FALSE(*other.Take(Bytes(server.challenge())));
  CHECK(server.Take(Bytes(other.answer())) == Step::kRefused);
  CHECK(gate.live == 0);
}

TEST_CASE("Dialogue: one who stands between and passes everything on gets nobody in") {
  struct Case {
    const char* transport;
    ChannelEnds as_the_client_sees;
    ChannelEnds as_the_server_sees;
  };
  // The one between has user 5, or address 5.
  for (const Case& relayed :
       {Case{"shm", Users(1, 5), Users(5, 0)}, Case{"shm", Users(1, 5), Users(1, 0)},
        Case{"shm", Users(1, 0), Users(5, 0)}, Case{"rdma", Hosts(1, 5), Hosts(5, 2)},
        Case{"rdma", Hosts(1, 5), Hosts(1, 2)}, Case{"rdma", Hosts(1, 2), Hosts(5, 2)}}) {
    Gate gate({kApp});
    ClientDialogue client(relayed.transport, relayed.as_the_client_sees, SomeHello(), Key(kApp));
    ServerDialogue server(gate, Over(relayed.transport), relayed.as_the_server_sees);
    KVD_REQUIRE_CODE(Shake(client, server), kPermissionDenied);
    CHECK(gate.live == 0);
    CHECK(gate.refusals == 1);
    // Nor is a server believed that is not where the client sees it.
    ServerDialogue honest(gate, Over(relayed.transport), relayed.as_the_client_sees);
    ClientDialogue other(relayed.transport, relayed.as_the_client_sees, SomeHello(), Key(kApp));
    CHECK(*Shake(other, honest));
  }
}

TEST_CASE("Dialogue: over shared memory nobody proves a key whose user means nothing to kvd") {
  Gate gate({kApp});
  ClientDialogue client("shm", Users(kNoId, 0), SomeHello(), Key(kApp));
  ServerDialogue server(gate, Over("shm"), Users(kNoId, 0));
  const absl::StatusOr<bool> admitted = Shake(client, server);
  KVD_REQUIRE_CODE(admitted, kPermissionDenied);
  CHECK_THAT(MessageOf(admitted.status()), Contains("another user namespace"));
  CHECK(gate.live == 0);
}

TEST_CASE("Dialogue: who is turned away is so once, whether it has spoken or not") {
  struct Full final : Admission {
    std::optional<std::string> TurnAway(const PeerIdentity&) override {
      ++asked;
      return asked > 2 ? std::optional<std::string>("too many of these") : std::nullopt;
    }
    Welcome Admit(const PeerIdentity&, const Hello&) override {
      return MakeRefusal(WelcomeStatus::kNotAdmitted, "nobody");
    }
    void Gone(uint64_t) override {}
    void CountRefusal() override { ++refusals; }
    int asked = 0;
    int refusals = 0;
  } full;
  ServerDialogue first(full, Over("shm"), {});
  CHECK_FALSE(first.TurnedAway());
  CHECK(first.Take(Bytes(SomeHello())) == Step::kRefused);
  CHECK(full.asked == 1);
  ServerDialogue second(full, Over("rdma"), {});
  CHECK(second.Take(Bytes(SomeHello())) == Step::kRefused);
  CHECK(full.asked == 2);
  CHECK(full.refusals == 0);  // Admit's own affair
  for (const bool has_spoken : {false, true}) {
    ServerDialogue other(full, Over("shm"), {});
    CHECK((has_spoken ? other.Take(Bytes(SomeHello())) == Step::kRefused : other.TurnedAway()));
    CHECK(std::string(other.welcome().text) == "too many of these");
  }
  CHECK(full.refusals == 2);
}

TEST_CASE("Dialogue: frames that are cut, too long or spoiled are refused and get nobody in") {
  Random random(Seed());
  for (int i = 0; i < 3000; ++i) {
    Gate gate({kApp});
    ClientDialogue client("shm", {}, SomeHello(), Key(kApp));
    ServerDialogue server(gate, Over("shm"), {});
    REQUIRE(server.Take(Bytes(client.hello())) == Step::kChallenged);
    std::vector<std::byte> challenge(Bytes(server.challenge()).begin(),
                                     Bytes(server.challenge()).end());
    REQUIRE_FALSE(*client.Take(challenge));
    std::vector<std::byte> answer(Bytes(client.answer()).begin(), Bytes(client.answer()).end());
    const auto spoil = [&](std::vector<std::byte>& frame) {
      switch (random.Uniform(3)) {
        case 0:
          frame.resize(random.Uniform(frame.size()));
          break;
        case 1:
          frame.resize(frame.size() + 1 + random.Uniform(300));
          break;
        default:
          frame[random.Uniform(frame.size())] ^= std::byte{1};
      }
    };
    spoil(answer);
    CHECK(server.Take(answer) == Step::kRefused);
    CHECK(gate.live == 0);
    CHECK(gate.refusals == 1);

    ClientDialogue other("shm", {}, SomeHello(), Key(kApp));
    spoil(challenge);
    // Of a nonce no client can say what it should be.
    const absl::StatusOr<bool> taken = other.Take(challenge);
    if (taken.ok()) CHECK_FALSE(*taken);
  }
}

TEST_CASE("Dialogue: a challenge that nobody asked for, or a second one, is the server's fault") {
  Gate gate({kApp});
  ClientDialogue client("shm", {}, SomeHello(), Key(kApp));
  ServerDialogue server(gate, Over("shm"), {});
  REQUIRE(server.Take(Bytes(client.hello())) == Step::kChallenged);
  REQUIRE_FALSE(*client.Take(Bytes(server.challenge())));
  KVD_REQUIRE_CODE(client.Take(Bytes(server.challenge())), kDataLoss);
  ClientDialogue keyless("shm", {}, SomeHello(), nullptr);
  KVD_REQUIRE_CODE(keyless.Take(Bytes(server.challenge())), kDataLoss);
}

TEST_CASE("Dialogue: who is let in and cannot be served gives the session back, and is told why") {
  Gate gate({});
  ServerDialogue server(gate, Over("shm"), {});
  REQUIRE(server.Take(Bytes(SomeHello())) == Step::kAdmitted);
  server.TakeSession();
  server.Refuse(WelcomeStatus::kFull, "no descriptors");
  CHECK(gate.live == 0);
  CHECK(gate.refusals == 1);
  CHECK(std::string(server.welcome().text) == "no descriptors");
}

}  // namespace kvd::test
