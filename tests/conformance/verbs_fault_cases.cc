// What a client does when a device refuses work, or never ends it: no READ lands in memory that was
// given back, and nothing waits for ever.
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/conformance/echo_server.h"
#include "tests/conformance/rig.h"
#include "tests/conformance/verbs_steps.h"

namespace kvd::test {
namespace {

// Chains of this thread: how many requests the device takes of the next one, or -1: all. What it
// does not take it refuses with ENOMEM.
thread_local int device_takes = -1;
// It says that it takes them, and forgets them.
thread_local bool device_forgets = false;

std::atomic<int (*)(ibv_qp*, ibv_send_wr*, ibv_send_wr**)> real_post_send;
std::atomic<int (*)(ibv_cq*, int, ibv_wc*)> real_poll_cq;

// Queue pairs that are destroyed take with them what of theirs nobody has polled, as some devices
// do, and with it the receives.
std::atomic<bool> device_forgets_destroyed = false;
std::mutex destroyed_mutex;
std::set<std::pair<ibv_context*, uint32_t>> destroyed;  // guarded by destroyed_mutex

int PollCq(ibv_cq* cq, int entries, ibv_wc* completions) {
  const int got = real_poll_cq.load()(cq, entries, completions);
  if (got <= 0 || !device_forgets_destroyed) return got;
  const std::lock_guard lock(destroyed_mutex);
  return static_cast<int>(
      std::remove_if(completions, completions + got,
                     [cq](const ibv_wc& completion) {
                       return destroyed.contains({cq->context, completion.qp_num});
                     }) -
      completions);
}

// How many times memory of so many bytes can still be registered; -1: any number.
constexpr size_t kLargeBytes = 400'000;  // less than a slab of a server's messages has
std::atomic<int> large_registrations = -1;

int PostSend(ibv_qp* qp, ibv_send_wr* chain, ibv_send_wr** bad) {
  if (device_forgets) return 0;
  if (device_takes < 0) return real_post_send.load()(qp, chain, bad);
  ibv_send_wr* last = nullptr;
  ibv_send_wr* refused = chain;
  for (; device_takes > 0 && refused != nullptr; --device_takes) {
    last = refused;
    refused = refused->next;
  }
  if (last != nullptr) {
    last->next = nullptr;
    if (const int error = real_post_send.load()(qp, chain, bad); error != 0) return error;
    last->next = refused;
  }
  if (refused == nullptr) return 0;
  device_takes = -1;
  *bad = refused;
  return ENOMEM;
}

std::vector<ReadOp> ReadsInto(const TransferBuffer& buffer, size_t count, uint64_t bytes) {
  std::vector<ReadOp> ops;
  for (size_t i = 0; i < count; ++i) {
    ops.push_back(
        ReadOp{RegionOffset{FakeRegion::kDataOffset}, bytes, buffer.bytes.data() + i * bytes, i});
  }
  return ops;
}

// How many of `count` READs were done well; each must complete.
size_t CompleteAll(ClientChannel& client, size_t count) {
  size_t completed = 0;
  size_t well = 0;
  const int64_t deadline_ns = DeadlineNs();
  while (completed < count) {
    ReadCompletion done[4];
    const size_t got = client.PollReads(done);
    for (size_t i = 0; i < got; ++i) well += done[i].ok ? 1 : 0;
    completed += got;
    REQUIRE(RealClock::Get().NowMonotonicNs() < deadline_ns);
    if (got == 0) client.Wait(deadline_ns).IgnoreError();
  }
  return well;
}

constexpr uint64_t kReadBytes = 65536;

}  // namespace
}  // namespace kvd::test

// In place of the library's: a device whose sends go through PostSend.
extern "C" ibv_context* ibv_open_device(ibv_device* device) {
  static const auto open =
      reinterpret_cast<ibv_context* (*)(ibv_device*)>(dlsym(RTLD_NEXT, "ibv_open_device"));
  ibv_context* context = open(device);
  if (context == nullptr) return nullptr;
  kvd::test::real_post_send = context->ops.post_send;
  context->ops.post_send = &kvd::test::PostSend;
  kvd::test::real_poll_cq = context->ops.poll_cq;
  context->ops.poll_cq = &kvd::test::PollCq;
  return context;
}

extern "C" int ibv_destroy_qp(ibv_qp* qp) {
  static const auto destroy =
      reinterpret_cast<int (*)(ibv_qp*)>(dlsym(RTLD_NEXT, "ibv_destroy_qp"));
  if (kvd::test::device_forgets_destroyed) {
    const std::lock_guard lock(kvd::test::destroyed_mutex);
    kvd::test::destroyed.emplace(qp->context, qp->qp_num);
  }
  return destroy(qp);
}

// What the macro ibv_reg_mr calls.
extern "C" ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* at, size_t bytes, uint64_t iova,
                                    unsigned access) {
  static const auto register_memory =
      reinterpret_cast<ibv_mr* (*)(ibv_pd*, void*, size_t, uint64_t, unsigned)>(
          dlsym(RTLD_NEXT, "ibv_reg_mr_iova2"));
  if (bytes >= kvd::test::kLargeBytes && kvd::test::large_registrations >= 0 &&
      kvd::test::large_registrations-- == 0) {
    kvd::test::large_registrations = 0;
    errno = ENOMEM;
    return nullptr;
  }
  return register_memory(pd, at, bytes, iova, access);
}

namespace kvd::test {

TEST_CASE("Verbs: a buffer that is freed waits for the READs into it, and the session goes on") {
  RequireWire();
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const auto client = rig.Connect();
  auto buffer = client->Allocate(16 * kReadBytes);
  auto other = client->Allocate(4096);
  KVD_REQUIRE_OK(buffer);
  KVD_REQUIRE_OK(other);
  const Delay delay("100ms");
  // More than fit the depth: some are not even posted.
  const auto ops = ReadsInto(*buffer, 32, kReadBytes / 2);
  KVD_REQUIRE_OK(client->PostReads(ops));
  client->Free(*buffer);
  CHECK(CompleteAll(*client, ops.size()) == ops.size());
  KVD_REQUIRE_OK(client->status());
  KVD_REQUIRE_OK(ReadOnce(*client, *other));
}

TEST_CASE("Verbs: freeing a buffer ends, whatever becomes of the READs into it") {
  RequireWire();
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const auto client = rig.Connect();
  auto buffer = client->Allocate(kReadBytes);
  KVD_REQUIRE_OK(buffer);
  const auto ops = ReadsInto(*buffer, 1, kReadBytes);
  SECTION("the link is down") {
    const LinkDown down;
    KVD_REQUIRE_OK(client->PostReads(ops));
    client->Free(*buffer);
  }
  SECTION("the device forgot them") {
    device_forgets = true;
    KVD_REQUIRE_OK(client->PostReads(ops));
    device_forgets = false;
    client->Free(*buffer);
  }
  CHECK(CompleteAll(*client, 1) == 0);
  KVD_REQUIRE_CODE(client->status(), kUnavailable);
}

TEST_CASE("Verbs: of a chain that the device refuses in the middle nothing lands later") {
  RequireWire();
  const int takes = GENERATE(0, 1, 3);
  CAPTURE(takes);
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const auto client = rig.Connect();
  const auto witness = rig.Connect();
  auto buffer = client->Allocate(8 * kReadBytes);
  auto witnessed = witness->Allocate(4096);
  KVD_REQUIRE_OK(buffer);
  KVD_REQUIRE_OK(witnessed);
  const auto ops = ReadsInto(*buffer, 8, kReadBytes);
  {
    const Delay delay("100ms");
    device_takes = takes;
    client->PostReads(ops).IgnoreError();  // taken, and ends in failure
    CHECK(CompleteAll(*client, ops.size()) == 0);
    CHECK_FALSE(client->status().ok());
    std::memset(buffer->bytes.data(), 0x5a, buffer->bytes.size());
    // Behind them on the same wire: had they gone on, they would be here by now.
    for (int i = 0; i < 3; ++i) KVD_REQUIRE_OK(ReadOnce(*witness, *witnessed));
  }
  size_t changed = 0;
  for (const std::byte byte : buffer->bytes) changed += byte != std::byte{0x5a} ? 1 : 0;
  CHECK(changed == 0);
  // Others, and the next connection, do not notice.
  const auto next = rig.Connect();
  KVD_REQUIRE_OK(next->Send(Frame("x")));
  CHECK(Receive(*next).value() == "x");
}

TEST_CASE("Verbs: a request that the device refuses was not sent, and ends the session") {
  RequireDevices();
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  const auto client = rig.Connect();
  device_takes = 0;
  const absl::Status sent = client->Send(Frame("x"));
  CHECK_FALSE(sent.ok());
  CHECK(client->status() == sent);
  CHECK(client->PollReply().empty());
  while (rig.admission.live() != 0) sched_yield();
}

TEST_CASE("Verbs: clients that go with requests under way take no receive with them") {
  RequireDevices();
  const FakeRegion region;
  FakeAdmission admission(region, 16, 4608);
  VerbsServerOptions options = MakeVerbsServerOptions(region, 1);
  options.shared_receives = 20;  // room for one client
  auto transport = VerbsServerTransport::Create(options);
  KVD_REQUIRE_OK(transport);
  KVD_REQUIRE_OK((*transport)->Start(admission));
  device_forgets_destroyed = true;
  std::vector<ServerEvent> events(8);
  ServerEndpoint& endpoint = (*transport)->endpoint(0);
  // Few of its sends are signaled: with some numbers of them the server has nothing under way.
  for (int answers = 0; answers < 6; ++answers) {
    CAPTURE(answers);
    std::unique_ptr<ClientChannel> client;
    std::atomic<bool> connected = false;
    std::thread connecting([&] {
      auto made =
          VerbsClientChannel::Connect(MakeVerbsTarget(**transport), MakeHello(), DeadlineNs(10));
      if (made.ok()) client = *std::move(made);
      connected = true;
    });
    while (!connected) {
      endpoint.Poll(events);
      sched_yield();
    }
    connecting.join();
    REQUIRE(client != nullptr);
    for (int i = 0; i < answers; ++i) {
      KVD_REQUIRE_OK(client->Send(Frame("x")));
      const int64_t deadline_ns = DeadlineNs(10);
      size_t count = 0;
      while ((count = endpoint.Poll(events)) == 0 ||
             events[count - 1].kind != ServerEvent::Kind::kRequest) {
        REQUIRE(RealClock::Get().NowMonotonicNs() < deadline_ns);
      }
      endpoint.Reply(events[count - 1].channel, Frame("y"));
      endpoint.Flush();
      REQUIRE(Receive(*client).value() == "y");
      while (!client->PollReply().empty()) {
      }
    }
    usleep(20'000);
    endpoint.Poll(events);  // what has been acknowledged
    for (int i = 0; i < 16; ++i) KVD_REQUIRE_OK(client->Send(Frame("x")));
    auto buffer = client->Allocate(4096);
    KVD_REQUIRE_OK(buffer);
    KVD_REQUIRE_OK(ReadOnce(*client, *buffer));  // behind them: all have arrived
    client.reset();
    // The acceptor knows that it went before the endpoint has looked at what it sent.
    usleep(100'000);
    while (admission.live() != 0) {
      endpoint.Poll(events);
      sched_yield();
    }
    usleep(50'000);  // and destroys its queue pair
  }
  device_forgets_destroyed = false;
}

TEST_CASE("Verbs: who cannot be answered for want of memory is let go at once") {
  RequireDevices();
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy);
  auto& transport = static_cast<VerbsServerTransport&>(rig.server());
  large_registrations = 1;  // what messages arrive in, and nothing to answer them from
  const bool refused = GENERATE(true, false);
  if (refused) rig.admission.set_sessions_max(0);
  const auto client =
      VerbsClientChannel::Connect(MakeVerbsTarget(transport), MakeHello(), DeadlineNs(10));
  large_registrations = -1;
  INFO(client.status());
  KVD_REQUIRE_CODE(client, kUnavailable);
  CHECK(transport.Facts().NumberOf("rdma_keep_alives") == 0);  // not found out by these
  while (rig.admission.live() != 0) sched_yield();
}

}  // namespace kvd::test
