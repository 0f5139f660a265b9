// Requests and replies: sizes, order, credits, fairness, wake-ups.
#include <sched.h>

#include <deque>
#include <thread>

#include "common/base/random.h"
#include "tests/conformance/echo_server.h"
#include "tests/conformance/rig.h"

namespace kvd::test {

using Kind = ServerEvent::Kind;

namespace {

std::string RandomText(Random& random, size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random.Next());
  return text;
}

}  // namespace

TEST_CASE("Transport: frames of every size arrive whole, in up to three parts") {
  Rig rig;
  Random random(Seed());
  EchoServer server(rig.endpoint(), EchoServer::Mode::kBusy);
  const auto client = rig.Connect();
  for (size_t bytes = 1; bytes <= Rig::kFrameBytes; bytes += bytes < 100 ? 1 : 97) {
    const std::string text = RandomText(random, bytes);
    const std::string_view view = text;
    const size_t a = random.Uniform(bytes + 1);
    const size_t b = random.Between(a, bytes);
    KVD_REQUIRE_OK(client->Send(FrameParts{std::as_bytes(std::span(view.substr(0, a))),
                                           view.substr(a, b - a), view.substr(b)}));
    REQUIRE(Receive(*client).value() == text);
  }
  const std::string longest = RandomText(random, Rig::kFrameBytes);
  KVD_REQUIRE_OK(client->Send(Frame(longest)));
  REQUIRE(Receive(*client).value() == longest);
}

TEST_CASE("Transport: a frame over the limit is refused and nothing is sent") {
  Rig rig;
  Pump pump(rig.endpoint());
  const auto client = rig.Connect();
  const std::string text(Rig::kFrameBytes + 1, 'x');
  KVD_REQUIRE_CODE(client->Send(Frame(text)), kInvalidArgument);
  pump.Next(Kind::kOpened);
  CHECK(pump.Quiet());
  CHECK(client->status().ok());
}

TEST_CASE("Transport: no more requests than credits are outstanding, and a reply gives one back") {
  Rig rig;
  Pump pump(rig.endpoint());
  const auto client = rig.Connect(MakeHello(3));
  const ChannelId id = pump.Next(Kind::kOpened).channel;
  for (int lap = 0; lap < 100; ++lap) {
    for (int i = 0; i < 3; ++i) KVD_REQUIRE_OK(client->Send(Frame(std::to_string(i))));
    KVD_REQUIRE_CODE(client->Send(Frame("one too many")), kResourceExhausted);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(pump.Next(Kind::kRequest).frame == std::to_string(i));
      pump.Reply(id, std::to_string(i + 10));
      REQUIRE(Receive(*client).value() == std::to_string(i + 10));
    }
  }
  CHECK(pump.Quiet());
}

TEST_CASE("Transport: one credit is enough") {
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const auto client = rig.Connect(MakeHello(1));
  for (int i = 0; i < 1000; ++i) {
    KVD_REQUIRE_OK(client->Send(Frame(std::to_string(i))));
    REQUIRE(Receive(*client).value() == std::to_string(i));
  }
}

TEST_CASE("Transport: with many requests under way, each channel sees its replies in order") {
  Rig rig;
  Random random(Seed());
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  struct Peer {
    std::unique_ptr<ClientChannel> channel;
    std::deque<std::string> expected;
  };
  std::vector<Peer> peers;
  for (int i = 0; i < 5; ++i) peers.push_back(Peer{rig.Connect(), {}});
  for (int step = 0; step < 20000; ++step) {
    Peer& peer = peers[random.Uniform(peers.size())];
    const std::string text = RandomText(random, random.Between(1, random.OneIn(50) ? 4608 : 64));
    const absl::Status sent = peer.channel->Send(Frame(text));
    if (sent.ok()) peer.expected.push_back(text);
    if (!sent.ok() || random.OneIn(3)) {
      if (peer.expected.empty()) continue;
      REQUIRE(Receive(*peer.channel).value() == peer.expected.front());
      peer.expected.pop_front();
    }
  }
  for (Peer& peer : peers) {
    for (const std::string& text : peer.expected) REQUIRE(Receive(*peer.channel).value() == text);
  }
}

TEST_CASE("Transport: a channel that floods does not starve another") {
  Rig rig;
  Pump pump(rig.endpoint());
  const auto flooding = rig.Connect();
  pump.Next(Kind::kOpened);
  const auto modest = rig.Connect();
  pump.Next(Kind::kOpened);
  for (uint32_t i = 0; i < Rig::kCredits; ++i) KVD_REQUIRE_OK(flooding->Send(Frame("flood")));
  KVD_REQUIRE_OK(modest->Send(Frame("modest")));
  size_t before = 0;
  while (pump.Next(Kind::kRequest).frame != "modest") ++before;
  CHECK(before < Rig::kCredits + (rig.transport().serves_in_order_of_arrival() ? 1 : 0));
}

TEST_CASE("Transport: many channels, most of them silent, are all served") {
  Rig rig;
  Random random(Seed());
  rig.admission.set_sessions_max(1000);
  EchoServer server(rig.endpoint(), GENERATE(EchoServer::Mode::kBusy, EchoServer::Mode::kSleepy));
  std::vector<std::unique_ptr<ClientChannel>> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(rig.Connect(MakeHello(2)));
  const int rounds = rig.transport().slow() ? 500 : 2000;
  for (int i = 0; i < rounds; ++i) {
    ClientChannel& client = *clients[random.Uniform(clients.size())];
    KVD_REQUIRE_OK(client.Send(Frame(std::to_string(i))));
    REQUIRE(Receive(client).value() == std::to_string(i));
  }
}

TEST_CASE("Transport: no wake-up is lost in thousands of sleeps of both sides") {
  // The pauses between requests sweep over the moment at which the server falls asleep; the wait
  // has no spinning deadline to save it, so a lost wake-up is a test that hangs.
  Rig rig;
  Random random(Seed());
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const auto client = rig.Connect();
  uint64_t sum = 0;
  const uint64_t rounds = rig.transport().slow() ? 5000 : 20000;
  for (uint64_t i = 0; i < rounds; ++i) {
    for (uint64_t pause = random.Uniform(4000); pause > 0; --pause) sum += pause ^ i;
    KVD_REQUIRE_OK(client->Send(Frame(std::to_string(sum))));
    if (random.OneIn(8)) sched_yield();
    REQUIRE(Receive(*client).value() == std::to_string(sum));
  }
  CHECK(server.sleeps() > 1000);
}

TEST_CASE("Transport: a sleeping client is woken by a reply that comes late") {
  Rig rig;
  Pump pump(rig.endpoint());
  const auto client = rig.Connect();
  const ChannelId id = pump.Next(Kind::kOpened).channel;
  for (int i = 0; i < 200; ++i) {
    KVD_REQUIRE_OK(client->Send(Frame("question")));
    pump.Next(Kind::kRequest);
    absl::StatusOr<std::string> reply = absl::UnknownError("none");
    std::thread waiting([&] { reply = Receive(*client); });
    for (int yields = 0; yields < i; ++yields) sched_yield();
    pump.Reply(id, "answer");
    waiting.join();
    REQUIRE(reply.value() == "answer");
  }
}

}  // namespace kvd::test
