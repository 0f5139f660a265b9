// Peers that break the rules: each ends its own session, with a reason where it can be read, and
// nobody else's.
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <array>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/unique_fd.h"
#include "common/transport/verbs/address.h"
#include "common/transport/verbs/cm_id.h"
#include "common/transport/verbs/verbs_client_channel.h"
#include "tests/conformance/echo_server.h"
#include "tests/conformance/raw_verbs_client.h"
#include "tests/conformance/rig.h"
#include "tests/conformance/verbs_under_test.h"

namespace kvd::test {
namespace {

using verbs::MessageKind;

class HostileRig {
 public:
  HostileRig() : honest_(rig_.Connect()) {}

  verbs::ClientPath Path() {
    const VerbsTarget target = MakeVerbsTarget(transport());
    auto path = target.connect == VerbsConnectMode::kCm
                    ? verbs::ConnectByCm(target, MakeHello(), DeadlineNs())
                    : verbs::ConnectByTcp(target, MakeHello(), DeadlineNs());
    KVD_REQUIRE_OK(path);
    return *std::move(path);
  }
  const VerbsServerTransport& transport() {
    return static_cast<VerbsServerTransport&>(rig_.server());
  }
  FakeAdmission& admission() { return rig_.admission; }

  void CheckEcho() {
    KVD_REQUIRE_OK(honest_->Send(Frame("still here")));
    CHECK(Receive(*honest_).value() == "still here");
  }

  // Others are as they were, and nothing is left of the one that misbehaved.
  void CheckOthersLive() {
    CheckEcho();
    while (rig_.admission.live() != 1) sched_yield();
    CHECK(rig_.admission.gone_twice() == 0);
  }

 private:
  Rig rig_;
  EchoServer server_{rig_.endpoint(), EchoServer::Mode::kSleepy, rig_.region.landing()};
  std::unique_ptr<ClientChannel> honest_;
};

// Each refusal says why, and from where the peer came: the addresses, in any order.
void CheckRefusals(const FakeAdmission& admission, std::multiset<std::string> addresses,
                   const std::string& why) {
  std::multiset<std::string> told;
  for (const FakeAdmission::Refusal& refusal : admission.refusals()) {
    told.insert(refusal.peer.address);
    CHECK(refusal.peer.transport == "rdma");
    CHECK(refusal.peer.uid == static_cast<uid_t>(-1));
    CHECK_THAT(refusal.why, Catch::Contains(why));
  }
  CHECK(told == addresses);
}

std::string LocalAddress(int socket) {
  verbs::SocketAddress address;
  address.length = sizeof(address.storage);
  REQUIRE(getsockname(socket, address.get(), &address.length) == 0);
  return verbs::ToText(address.get());
}

std::span<const std::byte> Bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("Verbs: before it is admitted a peer can read nothing, whatever it knows") {
  HostileRig rig;
  Welcome welcome;
  {
    RawVerbsClient admitted(rig.Path());
    welcome = admitted.BeAdmitted(MakeHello());
    CHECK(admitted.Access(IBV_WR_RDMA_READ, welcome.region_address, welcome.region_key, 64) ==
          IBV_WC_SUCCESS);
  }
  RawVerbsClient stranger(rig.Path());
  CHECK(stranger.Access(IBV_WR_RDMA_READ, welcome.region_address, welcome.region_key, 64) !=
        IBV_WC_SUCCESS);
  rig.CheckOthersLive();
}

TEST_CASE("Verbs: a READ beyond the region, by a wrong key, and any WRITE end that session only") {
  HostileRig rig;
  struct Bad {
    ibv_wr_opcode opcode;
    uint64_t offset;
    uint32_t key_off;
  };
  const uint64_t end = FakeRegion::kBytes + FakeRegion::kLandingBytes;
  for (const Bad& bad : {Bad{IBV_WR_RDMA_READ, end, 0}, Bad{IBV_WR_RDMA_READ, end - 32, 0},
                         Bad{IBV_WR_RDMA_READ, 0, 1000}, Bad{IBV_WR_RDMA_WRITE, 4096, 0}}) {
    RawVerbsClient client(rig.Path());
    const Welcome welcome = client.BeAdmitted(MakeHello());
    const ibv_wc_status status = client.Access(bad.opcode, welcome.region_address + bad.offset,
                                               welcome.region_key + bad.key_off, 64);
    // Devices call a WRITE where none is allowed an invalid request.
    CHECK((status == IBV_WC_REM_ACCESS_ERR ||
           (status == IBV_WC_REM_INV_REQ_ERR && bad.opcode == IBV_WR_RDMA_WRITE)));
    rig.CheckOthersLive();
  }
}

TEST_CASE(
    "Verbs: more sends than credits end the session with a reason, and the shared receives "
    "survive") {
  HostileRig rig;
  RawVerbsClient client(rig.Path());
  const Welcome welcome = client.BeAdmitted(MakeHello(2));
  REQUIRE(welcome.credits == 2);
  // As many at once as the send queue takes: the server cannot have answered them in between.
  for (int i = 0; i < 12; ++i) {
    if (client.PostMessage(MessageKind::kFrame, Bytes("flood")) != 0) break;
  }
  CHECK_THAT(client.CloseReason(), Catch::Contains("credits") || Catch::Equals(""));
  rig.CheckOthersLive();
}

TEST_CASE("Verbs: messages that are none end the session with a reason") {
  HostileRig rig;
  const std::string long_text(5000, 'x');
  for (int kind = 0; kind < 6; ++kind) {
    CAPTURE(kind);
    RawVerbsClient client(rig.Path());
    client.BeAdmitted(MakeHello());
    if (kind == 0) client.PostSend(Bytes("abc"));                      // shorter than a prefix
    if (kind == 1) client.PostSend(Bytes("\x03xxx\x01\x02\x03\x04"));  // reserved bytes, length
    if (kind == 2) client.PostMessage(MessageKind::kFrame, {});
    if (kind == 3) client.PostMessage(MessageKind::kClose, Bytes("bye"));
    if (kind == 4) client.PostMessage(static_cast<MessageKind>(77), Bytes("?"));
    if (kind == 5)
      client.PostMessage(MessageKind::kFrame, Bytes(long_text));  // longer than a receive
    const std::string reason = client.CloseReason();
    if (kind != 5) CHECK_THAT(reason, Catch::Contains("the server closed the session"));
    rig.CheckOthersLive();
  }
}

TEST_CASE("Verbs: a hello that is none, and a request before the welcome, are refused by name") {
  HostileRig rig;
  {
    RawVerbsClient client(rig.Path());
    Hello hello = MakeHello();
    hello.magic ^= 1;
    const Welcome welcome = client.BeAdmitted(hello);
    CHECK(welcome.status == static_cast<uint32_t>(WelcomeStatus::kMalformed));
    CHECK(welcome.region_key == 0);
    CHECK(welcome.region_address == 0);
  }
  {
    RawVerbsClient client(rig.Path());
    client.PostReceives();
    client.PostMessage(MessageKind::kFrame, Bytes("let me in"));
    CHECK_THAT(client.CloseReason(), Catch::Contains("hello"));
  }
  CHECK(rig.admission().refused() == 1);
  rig.CheckOthersLive();
}

TEST_CASE("Verbs: a connection that never says hello is closed") {
  HostileRig rig;
  RawVerbsClient client(rig.Path());
  client.PostReceives();
  CHECK_THAT(client.CloseReason(), Catch::Contains("no hello"));
  CHECK(rig.admission().refused() == 1);
  CheckRefusals(
      rig.admission(),
      {client.path().socket.valid() ? LocalAddress(client.path().socket.get())
                                    : verbs::ToText(rdma_get_local_addr(client.path().id.get()))},
      "no hello within 2 s");
  rig.CheckOthersLive();
}

TEST_CASE("Verbs: a peer that posts no receive and never polls costs others nothing") {
  HostileRig rig;
  RawVerbsClient client(rig.Path());
  client.BeAdmitted(MakeHello(RawVerbsClient::kReceives));
  // One receive went for the welcome; the replies to these need one more than there are.
  for (size_t i = 0; i < RawVerbsClient::kReceives; ++i)
    client.PostMessage(MessageKind::kFrame, Bytes("x"));
  for (int i = 0; i < 100; ++i) rig.CheckEcho();
  client.path().qp->Destroy();
  client.path().id.Reset();
  client.path().socket.Reset();
  rig.CheckOthersLive();
}

TEST_CASE("Verbs: private data that is none is rejected with a reason") {
  HostileRig rig;
  const VerbsTarget target = MakeVerbsTarget(rig.transport());
  if (target.connect != VerbsConnectMode::kCm) KVD_SKIP("only rdma_cm has private data");
  std::multiset<std::string> addresses;
  for (const size_t bytes : {0, 1, 23, 24, 56}) {
    CAPTURE(bytes);
    auto events = verbs::CmEventChannel::Create();
    KVD_REQUIRE_OK(events);
    auto id = verbs::CmId::Create(*events);
    KVD_REQUIRE_OK(id);
    auto to = verbs::Resolve(verbs::HostPort{target.host, target.port}, false).value();
    REQUIRE(rdma_resolve_addr(id->get(), nullptr, to[0].get(), 2000) == 0);
    REQUIRE((*events)->Wait(DeadlineNs())->type == RDMA_CM_EVENT_ADDR_RESOLVED);
    REQUIRE(rdma_resolve_route(id->get(), 2000) == 0);
    REQUIRE((*events)->Wait(DeadlineNs())->type == RDMA_CM_EVENT_ROUTE_RESOLVED);
    auto path = verbs::MakeClientPath(ibv_get_device_name(id->get()->verbs->device), 1, target, 1);
    KVD_REQUIRE_OK(path);
    const std::array<std::byte, 56> garbage{std::byte{0x5a}, std::byte{0x5a}};
    rdma_conn_param parameters{};
    parameters.private_data = garbage.data();
    parameters.private_data_len = static_cast<uint8_t>(bytes);
    parameters.qp_num = path->qp->number();
    parameters.retry_count = 6;
    REQUIRE(rdma_connect(id->get(), &parameters) == 0);
    const auto event = (*events)->Wait(DeadlineNs());
    REQUIRE(event->type == RDMA_CM_EVENT_REJECTED);
    addresses.insert(verbs::ToText(rdma_get_local_addr(id->get())));
    const absl::Status why =
        verbs::RejectStatus(std::span(event->private_data).first(event->private_bytes));
    CHECK_THAT(MessageOf(why), Catch::Contains("connect data"));
  }
  CHECK(rig.admission().refused() == 5);
  CheckRefusals(rig.admission(), addresses, "connect data");
  rig.CheckOthersLive();
}

TEST_CASE("Verbs: without rdma_cm, peers that connect and say nothing keep nobody out") {
  if (FindRdmaEnvironment().sides.empty()) KVD_SKIP("no RDMA devices: KVD_RDMA_DEVICES is not set");
  const FakeRegion region;
  FakeAdmission admission(region, 16, 4608);
  VerbsServerOptions options = MakeVerbsServerOptions(region, 1);
  options.connect = VerbsConnectMode::kTcp;
  auto transport = VerbsServerTransport::Create(options);
  KVD_REQUIRE_OK(transport);
  KVD_REQUIRE_OK((*transport)->Start(admission));
  EchoServer server((*transport)->endpoint(0), EchoServer::Mode::kSleepy);
  VerbsTarget target = MakeVerbsTarget(**transport);
  target.connect = VerbsConnectMode::kTcp;
  const auto to = verbs::Resolve(verbs::HostPort{target.host, target.port}, false).value();
  std::vector<UniqueFd> silent;
  std::multiset<std::string> addresses;
  for (int i = 0; i < 300; ++i) {  // more than there are handshakes at once
    silent.emplace_back(socket(to[0].family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(silent.back().get(), to[0].get(), to[0].length) == 0);
    addresses.insert(LocalAddress(silent.back().get()));
  }
  auto client = VerbsClientChannel::Connect(target, MakeHello(), DeadlineNs());
  KVD_REQUIRE_OK(client);
  KVD_REQUIRE_OK((*client)->Send(Frame("served")));
  CHECK(Receive(**client).value() == "served");
  // Each of them is told why.
  for (const UniqueFd& fd : silent) {
    std::array<char, 128> answer{};
    REQUIRE(recv(fd.get(), answer.data(), answer.size(), MSG_WAITALL) == 128);
    CHECK_THAT(std::string(answer.data() + 48), Catch::Contains("too many handshakes at once") ||
                                                    Catch::Contains("no connect data within 2 s"));
  }
  CHECK(admission.refused() == silent.size());
  CheckRefusals(admission, addresses, "");
}

}  // namespace kvd::test
