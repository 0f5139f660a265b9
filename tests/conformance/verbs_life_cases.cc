// Deaths, stops, links that go and come, addresses of all kinds, and what is left after many
// connections.
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/transport/verbs/verbs_client_channel.h"
#include "tests/conformance/echo_server.h"
#include "tests/conformance/rig.h"
#include "tests/conformance/verbs_peer.h"
#include "tests/conformance/verbs_steps.h"
#include "tests/conformance/verbs_under_test.h"

namespace kvd::test {
namespace {

uint64_t KeepAlives(const VerbsServerTransport& transport) {
  return transport.Facts().NumberOf("rdma_keep_alives");
}

// What the kernel holds for RDMA users: protection domains, queues, ids, memory regions.
std::string Resources() {
  std::string text;
  FILE* pipe = popen("rdma resource show", "r");
  REQUIRE(pipe != nullptr);
  char line[512];
  while (std::fgets(line, sizeof(line), pipe) != nullptr) text += line;
  pclose(pipe);
  return text;
}

}  // namespace

TEST_CASE("Verbs: a server that is killed ends its clients' waits") {
  RequireDevices();
  VerbsPeer server = VerbsPeer::Server();
  const auto client = ConnectTo(server.port());
  auto buffer = client->Allocate(4096);
  KVD_REQUIRE_OK(buffer);
  KVD_REQUIRE_OK(ReadOnce(*client, *buffer));
  server.Stop();  // so that it cannot answer
  KVD_REQUIRE_OK(client->Send(Frame("x")));
  server.Kill();
  {
    const Took took("noticing a killed server");
    KVD_REQUIRE_CODE(client->Wait(DeadlineNs()), kUnavailable);
  }
  KVD_REQUIRE_CODE(client->status(), kUnavailable);
  CHECK_FALSE(ReadOnce(*client, *buffer).ok());
}

TEST_CASE("Verbs: a server that is stopped is not dead: READs go on, requests wait for it") {
  RequireDevices();
  VerbsPeer server = VerbsPeer::Server();
  const auto client = ConnectTo(server.port());
  auto buffer = client->Allocate(4096);
  KVD_REQUIRE_OK(buffer);
  server.Stop();
  KVD_REQUIRE_OK(client->Send(Frame("x")));
  KVD_REQUIRE_CODE(client->Wait(RealClock::Get().NowMonotonicNs() + 1'500'000'000),
                   kDeadlineExceeded);
  for (int i = 0; i < 100; ++i) KVD_REQUIRE_OK(ReadOnce(*client, *buffer));
  KVD_REQUIRE_OK(client->status());
  server.Continue();
  CHECK(Receive(*client).value() == "x");
}

TEST_CASE("Verbs: a client that is killed is told to the server, and its session is given back") {
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const uint16_t port = static_cast<VerbsServerTransport&>(rig.server()).port();
  VerbsPeer client = VerbsPeer::Client(port);
  CHECK(rig.admission.live() == 1);
  client.Kill();
  const Took took("noticing a killed client");
  while (rig.admission.live() != 0) sched_yield();
  CHECK(rig.admission.gone_twice() == 0);
}

TEST_CASE("Verbs: a client that is stopped keeps its session, and others go on") {
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  auto& transport = static_cast<VerbsServerTransport&>(rig.server());
  VerbsPeer stopped = VerbsPeer::Client(transport.port());
  stopped.Stop();
  const auto other = ConnectTo(transport.port());
  // Long enough for the server to ask the silent one's device, which answers.
  while (KeepAlives(transport) < 2) {
    KVD_REQUIRE_OK(other->Send(Frame("x")));
    REQUIRE(Receive(*other).value() == "x");
  }
  CHECK(rig.admission.live() == 2);
  stopped.Continue();
  stopped.Kill();
  while (rig.admission.live() != 1) sched_yield();
}

TEST_CASE(
    "Verbs: a link that goes down ends waits and sessions on both sides; after it is up all works "
    "again") {
  RequireWire();
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  auto client = rig.Connect();
  LinkDown down;
  {
    const Took took("noticing a link that is down");
    client->Send(Frame("x")).IgnoreError();
    KVD_REQUIRE_CODE(client->Wait(DeadlineNs()), kUnavailable);
  }
  {
    const Took took("the server's noticing it");
    while (rig.admission.live() != 0) sched_yield();
  }
  CHECK_FALSE(
      VerbsClientChannel::Connect(MakeVerbsTarget(static_cast<VerbsServerTransport&>(rig.server())),
                                  MakeHello(), RealClock::Get().NowMonotonicNs() + 1'000'000'000)
          .ok());
  down.Restore();
  client = rig.Connect();
  KVD_REQUIRE_OK(client->Send(Frame("again")));
  CHECK(Receive(*client).value() == "again");
}

TEST_CASE("Verbs: an idle client with an idle server stays connected, by keep-alives alone") {
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const auto client = rig.Connect();
  auto& transport = static_cast<VerbsServerTransport&>(rig.server());
  while (KeepAlives(transport) < 3) {
    KVD_REQUIRE_CODE(client->Wait(RealClock::Get().NowMonotonicNs() + 300'000'000),
                     kDeadlineExceeded);
  }
  KVD_REQUIRE_OK(client->Send(Frame("x")));
  CHECK(Receive(*client).value() == "x");
  CHECK(rig.admission.live() == 1);
}

TEST_CASE("Verbs: IPv6 and link-local addresses lead to a server too") {
  const RdmaEnvironment environment = FindRdmaEnvironment();
  if (environment.sides.empty() || environment.server().ipv6_address.empty())
    KVD_SKIP("no IPv6 address is known");
  std::vector<std::pair<std::string, std::string>> hosts = {
      {environment.server().ipv6_address, environment.server().ipv6_address}};
  if (environment.disposable && environment.sides.size() == 2) {
    // The zone is the speaker's own device.
    hosts.emplace_back(absl::StrCat("fe80::ff:fe77:2%", environment.server().netdev),
                       absl::StrCat("fe80::ff:fe77:2%", environment.client().netdev));
  }
  for (const auto& [listens, connects] : hosts) {
    CAPTURE(listens);
    const FakeRegion region;
    FakeAdmission admission(region, 16, 4608);
    auto transport = VerbsServerTransport::Create(MakeVerbsServerOptions(region, 1, listens));
    KVD_REQUIRE_OK(transport);
    KVD_REQUIRE_OK((*transport)->Start(admission));
    EchoServer server((*transport)->endpoint(0), EchoServer::Mode::kSleepy);
    auto client = VerbsClientChannel::Connect(MakeVerbsTarget(**transport, connects), MakeHello(),
                                              DeadlineNs());
    KVD_REQUIRE_OK(client);
    KVD_REQUIRE_OK((*client)->Send(Frame("x")));
    CHECK(Receive(**client).value() == "x");
  }
}

TEST_CASE("Verbs: a READ depth of 1 makes progress with READs and pulls") {
  RequireDevices();
  const FakeRegion region;
  FakeAdmission admission(region, 16, 4608);
  VerbsServerOptions options = MakeVerbsServerOptions(region, 1);
  options.read_depth = 1;
  auto transport = VerbsServerTransport::Create(options);
  KVD_REQUIRE_OK(transport);
  KVD_REQUIRE_OK((*transport)->Start(admission));
  EchoServer server((*transport)->endpoint(0), EchoServer::Mode::kSleepy, region.landing());
  auto client =
      VerbsClientChannel::Connect(MakeVerbsTarget(**transport), MakeHello(), DeadlineNs());
  KVD_REQUIRE_OK(client);
  auto buffer = (*client)->Allocate(4 << 20);
  KVD_REQUIRE_OK(buffer);
  std::vector<ReadOp> ops;
  for (size_t i = 0; i < 16; ++i) {
    ops.push_back(ReadOp{RegionOffset{FakeRegion::kDataOffset + i * 4096}, 4096,
                         buffer->bytes.data() + i * 4096, i});
  }
  // And one of several pieces.
  ops.push_back(
      ReadOp{RegionOffset{FakeRegion::kDataOffset}, 3 << 20, buffer->bytes.data() + (1 << 20), 16});
  KVD_REQUIRE_OK((*client)->PostReads(ops));
  size_t completed = 0;
  while (completed < ops.size()) {
    ReadCompletion done[4];
    const size_t got = (*client)->PollReads(done);
    for (size_t i = 0; i < got; ++i) REQUIRE(done[i].ok);
    completed += got;
    if (got == 0) KVD_REQUIRE_OK((*client)->Wait(DeadlineNs()));
  }
  CHECK(std::memcmp(buffer->bytes.data() + 4096, region.base() + FakeRegion::kDataOffset + 4096,
                    4096) == 0);
  CHECK(std::memcmp(buffer->bytes.data() + (1 << 20), region.base() + FakeRegion::kDataOffset,
                    3 << 20) == 0);
  PullCommand command;
  command.address = buffer->address;
  command.key = buffer->key;
  command.length = 4 << 20;
  KVD_REQUIRE_OK((*client)->Send(FrameParts{std::as_bytes(std::span(&command, 1)), {}, {}}));
  const std::string reply = Receive(**client).value();
  std::memcpy(&command, reply.data(), sizeof(command));
  CHECK(command.failed == 0);
}

TEST_CASE("Verbs: a device that is not there is named, and never replaced by another") {
  RequireDevices();
  const FakeRegion region;
  VerbsServerOptions options = MakeVerbsServerOptions(region, 1);
  options.device = "mlx9_9";
  const auto server = VerbsServerTransport::Create(options);
  CHECK_FALSE(server.ok());
  CHECK_THAT(MessageOf(server), Catch::Contains("mlx9_9"));
  options.listen = "*:0";
  const auto anywhere = VerbsServerTransport::Create(options);
  KVD_REQUIRE_CODE(anywhere, kNotFound);
  CHECK_THAT(MessageOf(anywhere),
             Catch::Contains("mlx9_9") && Catch::Contains(FindRdmaEnvironment().server().device));
  VerbsTarget target = TargetAt(7711);
  target.device = "mlx9_9";
  const auto client = VerbsClientChannel::Connect(target, MakeHello(), DeadlineNs());
  KVD_REQUIRE_CODE(client, kNotFound);
}

TEST_CASE(
    "Verbs: a server at any address is reached, and a port that is taken is refused by name") {
  RequireDevices();
  const FakeRegion region;
  FakeAdmission admission(region, 16, 4608);
  VerbsServerOptions options = MakeVerbsServerOptions(region, 1);
  options.listen = "*:0";
  auto transport = VerbsServerTransport::Create(options);
  KVD_REQUIRE_OK(transport);
  KVD_REQUIRE_OK((*transport)->Start(admission));
  EchoServer server((*transport)->endpoint(0), EchoServer::Mode::kSleepy);
  KVD_REQUIRE_OK(
      VerbsClientChannel::Connect(MakeVerbsTarget(**transport), MakeHello(), DeadlineNs()));
  options.listen = absl::StrCat("*:", (*transport)->port());
  const auto second = VerbsServerTransport::Create(options);
  CHECK_FALSE(second.ok());
  CHECK_THAT(MessageOf(second), Catch::Contains(std::to_string((*transport)->port())));
}

TEST_CASE("Verbs: after many connections and kills the kernel holds what it held before") {
  const RdmaEnvironment environment = FindRdmaEnvironment();
  if (!environment.disposable) KVD_SKIP("others may use RDMA on this machine");
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy, rig.region.landing());
  const uint16_t port = static_cast<VerbsServerTransport&>(rig.server()).port();
  ConnectTo(port).reset();
  while (rig.admission.live() != 0) sched_yield();
  const auto settled = [&](const std::string& expected) {
    // The end of the last connections is taken to pieces on the acceptor's thread.
    for (int i = 0; i < 200; ++i) {
      if (Resources() == expected) return true;
    }
    return false;
  };
  std::string before = Resources();
  for (int i = 0; i < 20; ++i) {
    const std::string again = Resources();
    if (again == before) break;
    before = again;
  }
  for (int i = 0; i < 1000; ++i) {
    auto client = ConnectTo(port);
    auto buffer = client->Allocate(8192);
    KVD_REQUIRE_OK(buffer);
    if (i % 3 == 0) KVD_REQUIRE_OK(client->Send(Frame("unanswered")));
  }
  for (int i = 0; i < 10; ++i) VerbsPeer::Client(port).Kill();
  while (rig.admission.live() != 0) sched_yield();
  CHECK(rig.admission.gone() == 1011);
  INFO(before << "\nnow\n" << Resources());
  CHECK(settled(before));
}

TEST_CASE("Verbs: a memlock limit is named, with what is needed and what lifts it") {
  const RdmaEnvironment environment = FindRdmaEnvironment();
  if (!environment.disposable) KVD_SKIP("limits of this machine are not to be disturbed");
  const FakeRegion region;
  const VerbsServerOptions options = MakeVerbsServerOptions(region, 1);
  // In a child: the right to ignore the limit, once given up, does not come back.
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit limit{65536, 65536};
    prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (syscall(SYS_capget, &header, data) != 0) _exit(2);
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    data[0].permitted &= ~(1u << CAP_IPC_LOCK);
    data[0].inheritable &= ~(1u << CAP_IPC_LOCK);
    if (syscall(SYS_capset, &header, data) != 0 || setrlimit(RLIMIT_MEMLOCK, &limit) != 0) _exit(3);
    const auto server = VerbsServerTransport::Create(options);
    const std::string text = MessageOf(server);
    const bool named = absl::IsResourceExhausted(server.status()) &&
                       text.find("64 KiB") != std::string::npos &&
                       text.find("LimitMEMLOCK=infinity") != std::string::npos;
    if (!named) std::cerr << server.status() << "\n";
    _exit(named ? 0 : 4);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace kvd::test
