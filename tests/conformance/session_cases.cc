// Sessions: how they begin and end, from either side.
#include "tests/conformance/echo_server.h"
#include "tests/conformance/rig.h"

namespace kvd::test {

using Kind = ServerEvent::Kind;

TEST_CASE("Transport: an admitted client gets the welcome and opens one channel") {
  Rig rig;
  Pump pump(rig.endpoint());
  const auto client = rig.Connect(MakeHello(5));
  CHECK(client->welcome().credits == 5);
  CHECK(client->welcome().region_bytes == FakeRegion::kBytes);
  CHECK(client->status().ok());
  const Pump::Event opened = pump.Next(Kind::kOpened);
  CHECK(opened.name == "conformance");
  CHECK(opened.session_id == client->welcome().session_id);
  CHECK(rig.admission.live() == 1);
}

TEST_CASE(
    "Transport: a client that goes is told to the server once, and its session is given back") {
  Rig rig;
  Pump pump(rig.endpoint());
  auto client = rig.Connect();
  const ChannelId id = pump.Next(Kind::kOpened).channel;
  client.reset();
  const Pump::Event closed = pump.Next(Kind::kClosed);
  CHECK(closed.channel == id);
  CHECK(absl::IsUnavailable(closed.error));
  CHECK(pump.Quiet());
  CHECK(rig.admission.live() == 0);
  CHECK(rig.admission.gone() == 1);
  CHECK(rig.admission.gone_twice() == 0);
}

TEST_CASE("Transport: a client that goes wakes a sleeping server") {
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  for (int i = 0; i < 50; ++i) rig.Connect().reset();
  while (server.closed() != 50) sched_yield();
  CHECK(rig.admission.live() == 0);
}

TEST_CASE("Transport: closing a channel tells the client why, at once") {
  Rig rig;
  Pump pump(rig.endpoint());
  const auto client = rig.Connect();
  const ChannelId id = pump.Next(Kind::kOpened).channel;
  rig.endpoint().Close(id, absl::UnavailableError("kvd is shutting down"));
  const Pump::Event closed = pump.Next(Kind::kClosed);
  CHECK(closed.error == absl::UnavailableError("kvd is shutting down"));
  KVD_REQUIRE_CODE(client->Wait(DeadlineNs()), kUnavailable);
  KVD_REQUIRE_CODE(client->status(), kUnavailable);
  CHECK_THAT(MessageOf(client->status()), Catch::Contains("kvd is shutting down"));
  KVD_REQUIRE_CODE(client->Send(Frame("x")), kUnavailable);
  CHECK(rig.admission.gone() == 1);
}

TEST_CASE("Transport: a reply that was sent before the channel was closed still arrives") {
  Rig rig;
  Pump pump(rig.endpoint());
  const auto client = rig.Connect();
  const ChannelId id = pump.Next(Kind::kOpened).channel;
  KVD_REQUIRE_OK(client->Send(Frame("nonsense")));
  pump.Next(Kind::kRequest);
  pump.Reply(id, "malformed");
  rig.endpoint().Close(id, absl::InvalidArgumentError("frame is nonsense"));
  pump.Next(Kind::kClosed);
  KVD_REQUIRE_OK(client->Wait(DeadlineNs()));
  CHECK(Text(client->PollReply()) == "malformed");
  KVD_REQUIRE_CODE(client->Wait(DeadlineNs()), kDataLoss);
  CHECK_THAT(MessageOf(client->status()), Catch::Contains("frame is nonsense"));
}

TEST_CASE("Transport: replies and pulls for a channel that has gone are swallowed") {
  Rig rig;
  Pump pump(rig.endpoint());
  auto client = rig.Connect();
  const ChannelId id = pump.Next(Kind::kOpened).channel;
  client.reset();
  pump.Next(Kind::kClosed);
  pump.Reply(id, "late");
  rig.endpoint().Close(id, absl::InternalError("late"));
  std::byte* into = rig.region.landing().data();
  CHECK_FALSE(rig.endpoint().Pull(id, PullSource{0, 1, 8}, into, 1).ok());
  CHECK(pump.Quiet());
}

TEST_CASE("Transport: a refused client learns the reason and leaves nothing behind") {
  Rig rig;
  rig.admission.set_sessions_max(1);
  const auto first = rig.Connect();
  const auto second = rig.TryConnect();
  KVD_REQUIRE_CODE(second, kUnavailable);
  CHECK_THAT(MessageOf(second), Catch::Contains("no more sessions in this test"));
  CHECK(rig.admission.live() == 1);
  CHECK(rig.admission.gone() == 0);
  CHECK(rig.admission.refused() == 0);  // by the transport itself
}

TEST_CASE("Transport: no common protocol version is a FailedPrecondition") {
  Rig rig;
  Hello hello = MakeHello();
  hello.version_min = kProtocolVersion + 1;
  hello.version_max = kProtocolVersion + 3;
  KVD_REQUIRE_CODE(rig.TryConnect(hello), kFailedPrecondition);
  CHECK(rig.admission.gone() == 0);
  CHECK(rig.admission.refused() == 1);
}

TEST_CASE("Transport: after StopAccepting sessions live on and nobody new gets in") {
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const auto client = rig.Connect();
  rig.server().StopAccepting();
  rig.server().StopAccepting();
  KVD_REQUIRE_CODE(rig.TryConnect(), kUnavailable);
  KVD_REQUIRE_OK(client->Send(Frame("still here")));
  CHECK(Receive(*client).value() == "still here");
}

TEST_CASE("Transport: sessions are spread over the endpoints") {
  Rig rig(2);
  EchoServer one(rig.endpoint(0), EchoServer::Mode::kSleepy);
  EchoServer two(rig.endpoint(1), EchoServer::Mode::kSleepy);
  std::vector<std::unique_ptr<ClientChannel>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(rig.Connect());
    KVD_REQUIRE_OK(clients.back()->Send(Frame("hello")));
    CHECK(Receive(*clients.back()).value() == "hello");
  }
  CHECK(one.opened() == 4);
  CHECK(two.opened() == 4);
}

TEST_CASE("Transport: a wait ends at its deadline") {
  Rig rig;
  const auto client = rig.Connect();
  KVD_REQUIRE_CODE(client->Wait(RealClock::Get().NowMonotonicNs() + 1'000'000), kDeadlineExceeded);
  KVD_REQUIRE_CODE(client->Wait(0), kDeadlineExceeded);
  CHECK(client->status().ok());
}

}  // namespace kvd::test
