// However clients connect, and however many: who says nothing, or nonsense, is refused with a
// reason, and cannot keep others out.
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "common/transport/shm/descriptor_closer.h"
#include "common/transport/shm/shm_acceptor.h"
#include "common/transport/shm/shm_client_channel.h"
#include "common/transport/shm/shm_server_transport.h"
#include "tests/conformance/raw_shm_client.h"
#include "tests/conformance/rig.h"
#include "tests/unit/common/transport/shm/hostile_rig.h"

namespace kvd::test {

TEST_CASE("Handshake: what is no hello is refused with a reason, and nothing is handed out") {
  HostileRig rig;
  const auto refused = [&](const auto& object) {
    RawShmClient client(rig.path);
    client.SendObject(object);
    const auto answer = client.Receive();
    REQUIRE(answer.has_value());
    REQUIRE(answer->size() == sizeof(Welcome));
    Welcome welcome;
    std::memcpy(&welcome, answer->data(), sizeof(welcome));
    CHECK_FALSE(client.Receive().has_value());
    CHECK(welcome.region_bytes == 0);
    CHECK(std::string(welcome.text) != "");
    return static_cast<WelcomeStatus>(welcome.status);
  };
  Hello hello = MakeHello();
  hello.magic ^= 1;
  CHECK(refused(hello) == WelcomeStatus::kMalformed);
  hello = MakeHello();
  hello.version_min = hello.version_max = 99;
  CHECK(refused(hello) == WelcomeStatus::kWrongVersion);
  hello = MakeHello();
  hello.client_id = 0;
  CHECK(refused(hello) == WelcomeStatus::kMalformed);
  CHECK(refused('x') == WelcomeStatus::kMalformed);
  CHECK(refused(std::array<char, 65>{}) == WelcomeStatus::kMalformed);
  CHECK(refused(std::array<char, 4000>{}) == WelcomeStatus::kMalformed);
  rig.CheckAllGone();
}

TEST_CASE("Handshake: descriptors that come with a hello are dropped") {
  HostileRig rig;
  RawShmClient client(rig.path);
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fds[] = {null.get(), null.get()};
  client.SendObject(MakeHello(), fds);
  CHECK(client.Receive()->size() == sizeof(Welcome));
  rig.CheckHonest();
}

TEST_CASE("Handshake: one who says nothing is told so after two seconds and dropped") {
  HostileRig rig;
  RawShmClient client(rig.path);
  const auto answer = client.Receive();
  REQUIRE(answer.has_value());
  CHECK_THAT(*answer, Catch::Contains("no hello within 2 s"));
  CHECK_FALSE(client.Receive().has_value());
  // And it is known who it was.
  const auto refusals = rig.admission.refusals();
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].why == "no hello within 2 s");
  CHECK(refusals[0].peer.transport == "shm");
  CHECK(refusals[0].peer.pid == getpid());
  CHECK(refusals[0].peer.uid == geteuid());
}

TEST_CASE(
    "Handshake: one who owes the answer to a challenge is told that, not that it said nothing") {
  FakeRegion region;
  struct Challenging final : FakeAdmission {
    using FakeAdmission::FakeAdmission;
    bool WantsProof(const PeerIdentity&, const Hello&) override { return true; }
  } admission(region, 16, 4608);
  TempDir dir;
  ShmServerTransport::Options options;
  options.region_fd = region.fd();
  auto transport =
      ShmServerTransport::Create(SocketClaim::Take(dir.Join("s")).value(), options).value();
  KVD_REQUIRE_OK(transport->Start(admission));
  RawShmClient client(dir.Join("s"));
  REQUIRE(client.SendObject(MakeHello()) == 0);
  CHECK(client.Receive().value().size() == sizeof(Challenge));
  CHECK_THAT(client.Receive().value(), Catch::Contains("no answer to the challenge within 2 s"));
  CHECK(admission.refusals().at(0).why == "no answer to the challenge within 2 s");
}

TEST_CASE("Handshake: who connects too often is turned away before it has said anything") {
  FakeRegion region;
  struct Limited final : FakeAdmission {
    using FakeAdmission::FakeAdmission;
    std::optional<std::string> TurnAway(const PeerIdentity& peer) override {
      return peer.pid == getpid() && ++asked > 3 ? std::optional<std::string>("that was enough")
                                                 : std::nullopt;
    }
    std::atomic<int> asked{0};
  } admission(region, 16, 4608);
  TempDir dir;
  ShmServerTransport::Options options;
  options.region_fd = region.fd();
  auto transport =
      ShmServerTransport::Create(SocketClaim::Take(dir.Join("s")).value(), options).value();
  KVD_REQUIRE_OK(transport->Start(admission));
  std::vector<std::unique_ptr<RawShmClient>> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(std::make_unique<RawShmClient>(dir.Join("s")));
  for (int i = 3; i < 5; ++i) {
    CHECK_THAT(silent[static_cast<size_t>(i)]->Receive().value(),
               Catch::Contains("that was enough"));
  }
  CHECK(admission.refusals().size() == 2);
  // Those that were let begin are asked no second time.
  CHECK(silent[0]->Join(MakeHello()).has_value());
  CHECK(admission.asked == 5);
}

TEST_CASE("Handshake: silent ones cannot keep others out") {
  HostileRig rig;
  std::vector<std::unique_ptr<RawShmClient>> silent;
  for (size_t i = 0; i < ShmAcceptor::kHandshakesMax + 64; ++i) {
    silent.push_back(std::make_unique<RawShmClient>(rig.path));
  }
  KVD_REQUIRE_OK(ShmClientChannel::Connect(rig.path, MakeHello(), DeadlineNs()));
  CHECK_THAT(*silent.front()->Receive(), Catch::Contains("too many handshakes"));
  CHECK(rig.admission.refused() > 0);
  rig.CheckHonest();
}

// Fewer than the listener's queue holds, so that no connect waits.
constexpr size_t kListenerQueue = 400;

TEST_CASE("Handshake: however many connect at once, whoever has spoken is admitted") {
  HostileRig rig;
  std::vector<std::unique_ptr<RawShmClient>> clients;
  std::unique_lock hold = rig.admission.Hold();
  for (size_t i = 0; i < kListenerQueue; ++i) {
    clients.push_back(std::make_unique<RawShmClient>(rig.path));
    REQUIRE(clients.back()->SendObject(MakeHello()) == 0);
  }
  hold.unlock();  // now all of them are there at once
  for (const auto& client : clients) {
    const auto answer = client->Receive();
    REQUIRE(answer.has_value());
    Welcome welcome;
    std::memcpy(&welcome, answer->data(), sizeof(welcome));
    CHECK(welcome.status == static_cast<uint32_t>(WelcomeStatus::kAdmitted));
  }
  CHECK(rig.admission.refused() == 0);
}

TEST_CASE("Handshake: 300 clients connect at once, beside one that connects and leaves") {
  HostileRig rig;
  std::atomic<bool> stop{false};
  // Not for ever: a sanitizer holds up the thread that closes what it leaves, and these are
  // descriptors of the clients' process, too.
  std::thread loop([&] {
    for (int i = 0; i < 5'000 && !stop; ++i) RawShmClient leaves_at_once(rig.path);
  });
  std::atomic<size_t> admitted{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 300; ++i) {
    clients.emplace_back([&] {
      if (ShmClientChannel::Connect(rig.path, MakeHello(), DeadlineNs()).ok()) ++admitted;
    });
  }
  for (std::thread& client : clients) client.join();
  stop = true;
  loop.join();
  CHECK(admitted == 300);
  CHECK(rig.admission.refused() == 0);
}

// A server that believes that it may have few descriptors; this process may have more, for the
// clients.
class FewDescriptors {
 public:
  static constexpr size_t kQuarter = 40;

  FewDescriptors() {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit few{4 * kQuarter, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
    rig.emplace();
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before_) == 0);
  }

  std::optional<HostileRig> rig;

 private:
  rlimit before_{};
};

TEST_CASE("Hostile client: those who leave at once do not use up the descriptors") {
  FewDescriptors few;
  std::unique_lock hold = HoldDescriptorCloser();
  // Fewer than the listener's queue holds, where they wait.
  for (size_t i = 0; i < 5 * FewDescriptors::kQuarter; ++i) {
    RawShmClient(few.rig->path).CloseSocket();
  }
  size_t most = 0;
  for (int i = 0; i < 200; ++i) {
    few.rig->CheckHonest();
    most = std::max(most, DescriptorsToClose());
  }
  CHECK(most > 0);
  CHECK(most <= FewDescriptors::kQuarter);
  hold.unlock();
  KVD_REQUIRE_OK(ShmClientChannel::Connect(few.rig->path, MakeHello(), DeadlineNs()));
  few.rig->CheckAllGone();
}

TEST_CASE("Hostile client: those who bring descriptors do not use them up") {
  FewDescriptors few;
  std::vector<std::unique_ptr<RawShmClient>> clients;
  for (size_t i = 0; i < 10; ++i) clients.push_back(std::make_unique<RawShmClient>(few.rig->path));
  // It comes after them, so now all of them are accepted.
  KVD_REQUIRE_OK(ShmClientChannel::Connect(few.rig->path, MakeHello(), DeadlineNs()));
  std::unique_lock hold = HoldDescriptorCloser();
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<int> fds(kPacketFdsMax, null.get());
  for (const auto& client : clients) {
    REQUIRE(client->SendObject('x', fds) == 0);
    const std::string answer = client->Receive().value_or("");
    if (client == clients.front()) continue;
    CHECK_THAT(answer, Catch::Contains("too many descriptors to close"));
  }
  CHECK(DescriptorsToClose() <= 2 * FewDescriptors::kQuarter + kPacketFdsMax + clients.size());
  hold.unlock();
  KVD_REQUIRE_OK(ShmClientChannel::Connect(few.rig->path, MakeHello(), DeadlineNs()));
}

TEST_CASE("Handshake: silent ones take a quarter of few descriptors at most") {
  FewDescriptors few;
  std::vector<std::unique_ptr<RawShmClient>> silent;
  for (size_t i = 0; i < FewDescriptors::kQuarter + 10; ++i) {
    silent.push_back(std::make_unique<RawShmClient>(few.rig->path));
  }
  CHECK_THAT(silent.front()->Receive().value_or(""), Catch::Contains("too many handshakes"));
}

}  // namespace kvd::test
