// Paths that carry small packets only, and the GIDs between which there is none.
#include "absl/strings/str_cat.h"
#include "common/transport/verbs/client_path.h"
#include "tests/conformance/echo_server.h"
#include "tests/conformance/rig.h"
#include "tests/conformance/verbs_steps.h"
#include "tests/conformance/verbs_under_test.h"

namespace kvd::test {
namespace {

// A server that is connected to without rdma_cm, at the IPv4 address of its side.
struct TcpRig {
  explicit TcpRig(int gid_index = -1) {
    VerbsServerOptions options = MakeVerbsServerOptions(region, 1);
    options.connect = VerbsConnectMode::kTcp;
    options.gid_index = gid_index;
    auto created = VerbsServerTransport::Create(options);
    KVD_REQUIRE_OK(created);
    transport = *std::move(created);
    KVD_REQUIRE_OK(transport->Start(admission));
    server = std::make_unique<EchoServer>(transport->endpoint(0), EchoServer::Mode::kSleepy);
  }

  VerbsTarget Target(int gid_index) const {
    VerbsTarget target = MakeVerbsTarget(*transport);
    target.connect = VerbsConnectMode::kTcp;
    target.gid_index = gid_index;
    return target;
  }

  absl::StatusOr<std::unique_ptr<ClientChannel>> Connect(int gid_index) const {
    return VerbsClientChannel::Connect(Target(gid_index), MakeHello(), DeadlineNs());
  }

  const FakeRegion region;
  FakeAdmission admission{region, 16, 4608};
  std::unique_ptr<VerbsServerTransport> transport;
  std::unique_ptr<EchoServer> server;
};

void RequireEcho(ClientChannel& client) {
  KVD_REQUIRE_OK(client.Send(Frame("x")));
  CHECK(Receive(client).value() == "x");
}

// Indexes of the guest's GIDs, tests/softroce/README.md.
constexpr int kIpv4Gid = 1;
constexpr int kIpv6Gid = 2;

}  // namespace

TEST_CASE("Verbs: a path that loses large packets is found when connecting, with their size") {
  RequireWire();
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const uint16_t port = static_cast<VerbsServerTransport&>(rig.server()).port();
  LargePacketsVanish vanish(2000);
  const int64_t deadline_ns = DeadlineNs(20);
  {
    const Took took("finding that large packets vanish");
    const auto client = VerbsClientChannel::Connect(TargetAt(port), MakeHello(), deadline_ns);
    KVD_REQUIRE_CODE(client, kUnavailable);
    CHECK_THAT(MessageOf(client),
               Catch::Contains("READs of 64 bytes from") &&
                   Catch::Contains("arrive, of 4096 not: the path drops packets of the active MTU, "
                                   "4096"));
  }
  CHECK(RealClock::Get().NowMonotonicNs() < deadline_ns);
  // Sooner than the device gives up: by the deadline all the same.
  const auto hasty = VerbsClientChannel::Connect(TargetAt(port), MakeHello(),
                                                 RealClock::Get().NowMonotonicNs() + 300'000'000);
  CHECK_FALSE(hasty.ok());
  vanish.Restore();
  RequireEcho(*ConnectTo(port));
}

TEST_CASE(
    "Verbs: a server's interface with a smaller MTU is found, or agreed on where that is told") {
  RequireWire();
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const uint16_t port = static_cast<VerbsServerTransport&>(rig.server()).port();
  const std::string netdev = FindRdmaEnvironment().server().netdev;
  Disturbance small(absl::StrCat("ip link set ", netdev, " mtu 1500"),
                    absl::StrCat("ip link set ", netdev, " mtu 4200"));
  const auto client = VerbsClientChannel::Connect(TargetAt(port), MakeHello(), DeadlineNs(20));
  if (VerbsConnectModeUnderTest() == VerbsConnectMode::kTcp) {
    KVD_REQUIRE_OK(client);  // MTU 1024, the smaller one
    RequireEcho(**client);
  } else {
    KVD_REQUIRE_CODE(client, kUnavailable);
    CHECK_THAT(MessageOf(client), Catch::Contains("the path drops packets"));
  }
  small.Restore();
  RequireEcho(*ConnectTo(port));
}

TEST_CASE("Verbs: the GID with the index that was given is used, on both sides") {
  RequireWire();
  const int index = GENERATE(kIpv4Gid, kIpv6Gid);
  const TcpRig rig(index);
  const auto client = rig.Connect(index);
  KVD_REQUIRE_OK(client);
  RequireEcho(**client);
}

TEST_CASE("Verbs: a GID index that does not exist is an error that names it and the device") {
  RequireWire();
  const TcpRig rig;
  for (const int index : {9, 255, 256, 100'000}) {
    const auto client = rig.Connect(index);
    KVD_REQUIRE_CODE(client, kNotFound);
    CHECK_THAT(MessageOf(client), Catch::Contains(FindRdmaEnvironment().client().device) &&
                                      Catch::Contains(absl::StrCat("no GID with index ", index)));
  }
  const auto chosen = rig.Connect(-1);
  KVD_REQUIRE_OK(chosen);
  RequireEcho(**chosen);
}

TEST_CASE("Verbs: GIDs of two kinds do not meet, and each side's kind is named") {
  RequireWire();
  const TcpRig rig;
  const auto client = rig.Connect(kIpv6Gid);
  KVD_REQUIRE_CODE(client, kUnavailable);
  CHECK_THAT(MessageOf(client),
             Catch::Contains("RoCE v2 IPv4 and RoCE v2 IPv6") && Catch::Contains("--gid_index"));
  KVD_REQUIRE_OK(rig.Connect(kIpv4Gid));
}

TEST_CASE("Verbs: without rdma_cm too, the device is the one whose address leads to the server") {
  RequireWire();
  const TcpRig rig;
  VerbsTarget target = rig.Target(-1);
  target.device.clear();
  const auto to_server = verbs::ConnectByTcp(target, MakeHello(), DeadlineNs());
  KVD_REQUIRE_OK(to_server);
  CHECK_THAT(to_server->name, Catch::EndsWith(" by " + FindRdmaEnvironment().client().device));
  // And the other way round: the clients' side serves.
  const FakeRegion region;
  FakeAdmission admission(region, 16, 4608);
  VerbsServerOptions options =
      MakeVerbsServerOptions(region, 1, FindRdmaEnvironment().client().address);
  options.device = FindRdmaEnvironment().client().device;
  options.connect = VerbsConnectMode::kTcp;
  auto transport = VerbsServerTransport::Create(options);
  KVD_REQUIRE_OK(transport);
  KVD_REQUIRE_OK((*transport)->Start(admission));
  target.host = FindRdmaEnvironment().client().address;
  target.port = (*transport)->port();
  const auto to_client = verbs::ConnectByTcp(target, MakeHello(), DeadlineNs());
  KVD_REQUIRE_OK(to_client);
  CHECK_THAT(to_client->name, Catch::EndsWith(" by " + FindRdmaEnvironment().server().device));
}

}  // namespace kvd::test
