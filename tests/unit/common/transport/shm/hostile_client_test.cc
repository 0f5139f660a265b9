// Whatever a client does to its socket and its memory, the server ends at most that client, says
// why, gives everything back, and goes on serving the others.
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "common/base/checksum.h"
#include "common/base/random.h"
#include "common/transport/sealed_memory.h"
#include "common/transport/shm/shm_client_channel.h"
#include "common/transport/shm/shm_server_transport.h"
#include "tests/conformance/echo_server.h"
#include "tests/conformance/raw_shm_client.h"
#include "tests/conformance/rig.h"
#include "tests/unit/common/transport/shm/hostile_rig.h"

namespace kvd::test {
namespace {

UniqueFd Memfd(uint64_t bytes, int seals) {
  UniqueFd fd(memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0);
  REQUIRE(fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

// Of what this end sent and the other has not read.
int UnreadBytes(int socket) {
  int bytes = 0;
  REQUIRE(ioctl(socket, SIOCOUTQ, &bytes) == 0);
  return bytes;
}

SegmentNotice Register(uint32_t id, uint64_t length) {
  return SegmentNotice{static_cast<uint32_t>(SegmentAction::kRegister), id, length};
}

}  // namespace

TEST_CASE("Hostile client: a stamp that cannot be ends its session") {
  HostileRig rig(GENERATE(EchoServer::Mode::kBusy, EchoServer::Mode::kSleepy));
  for (const uint32_t stamp : {2u, 7u, ~0u}) {
    RawShmClient client(rig.path);
    REQUIRE(client.Join(MakeHello()).has_value());
    client.Publish(0, stamp, 8);
    CHECK_THAT(client.WaitForEnd(), Catch::Contains("stamp or length"));
  }
  rig.CheckAllGone();
}

TEST_CASE("Hostile client: a length over the frame size ends its session") {
  HostileRig rig;
  for (const uint32_t length : {4609u, 65536u, ~0u}) {
    RawShmClient client(rig.path);
    REQUIRE(client.Join(MakeHello()).has_value());
    client.Publish(0, 1, length);
    CHECK_THAT(client.WaitForEnd(), Catch::Contains("stamp or length"));
  }
  rig.CheckAllGone();
}

TEST_CASE("Hostile client: more requests than credits end its session") {
  // The pump answers nothing, so every request stays outstanding.
  FakeRegion region;
  FakeAdmission admission(region, 4, 4608);
  TempDir dir;
  ShmServerTransport::Options options;
  options.region_fd = region.fd();
  auto transport =
      ShmServerTransport::Create(SocketClaim::Take(dir.Join("s")).value(), options).value();
  KVD_REQUIRE_OK(transport->Start(admission));
  Pump pump(transport->endpoint(0));
  RawShmClient client(dir.Join("s"));
  REQUIRE(client.Join(MakeHello(4)).has_value());
  pump.Next(ServerEvent::Kind::kOpened);
  for (uint32_t i = 0; i < 4; ++i) {
    client.Publish(i, 1, 8);
    pump.Next(ServerEvent::Kind::kRequest);
  }
  client.Publish(4, 2, 8);
  const Pump::Event closed = pump.Next(ServerEvent::Kind::kClosed);
  CHECK(absl::IsInvalidArgument(closed.error));
  CHECK_THAT(client.WaitForEnd(), Catch::Contains("4 credits"));
  CHECK(admission.live() == 0);
}

TEST_CASE("Hostile client: one that never takes its replies costs nobody else anything") {
  HostileRig rig;
  RawShmClient client(rig.path);
  REQUIRE(client.Join(MakeHello(16)).has_value());
  for (uint32_t i = 0; i < 20000; ++i) {
    // Not before the last one was answered: the reply's stamp is all that this client looks at.
    client.Publish(i, i / 16 + 1, 8);
    auto* reply = reinterpret_cast<uint64_t*>(reinterpret_cast<std::byte*>(&client.header()) +
                                              client.layout().replies_offset() +
                                              i % 16 * client.layout().slot_bytes);
    while (static_cast<uint32_t>(std::atomic_ref<uint64_t>(*reply).load()) != i / 16 + 1) {
      sched_yield();
    }
  }
  rig.CheckHonest();
  client.CloseSocket();
  rig.CheckAllGone();
}

TEST_CASE("Hostile client: scribbling over everything at random harms nobody else") {
  HostileRig rig(GENERATE(EchoServer::Mode::kBusy, EchoServer::Mode::kSleepy));
  Random random(Seed());
  for (int session = 0; session < 20; ++session) {
    RawShmClient client(rig.path);
    REQUIRE(client.Join(MakeHello()).has_value());
    auto* words = reinterpret_cast<uint64_t*>(&client.header());
    const uint64_t count = client.layout().segment_bytes() / 8;
    for (int i = 0; i < 20000; ++i) {
      // Mostly where it hurts: the flags, and the words of the first slots.
      uint64_t at = random.Uniform(count);
      if (random.OneIn(2)) at = random.Uniform(64);
      if (random.OneIn(4)) {
        at = static_cast<uint64_t>(client.slot(random.Uniform(16)) -
                                   reinterpret_cast<std::byte*>(words)) /
             8;
      }
      const uint64_t value =
          random.OneIn(2) ? random.Next() : random.Uniform(4) << 32 | random.Uniform(4);
      std::atomic_ref<uint64_t>(words[at]).store(value, std::memory_order_relaxed);
    }
    client.SendObject(kDoorbell);
    rig.CheckHonest();
  }
  rig.CheckAllGone();
}

TEST_CASE("Hostile client: garbage on the socket ends its session") {
  HostileRig rig(GENERATE(EchoServer::Mode::kBusy, EchoServer::Mode::kSleepy));
  Random random(Seed());
  for (const size_t bytes : {2, 15, 16, 17, 64, 4096}) {
    RawShmClient client(rig.path);
    REQUIRE(client.Join(MakeHello()).has_value());
    std::string garbage(bytes, 'g');
    client.Send(std::as_bytes(std::span(garbage)));
    CHECK(client.WaitForEnd() != "");
  }
  rig.CheckAllGone();
}

TEST_CASE("Hostile client: ringing without need ends its session") {
  HostileRig rig;
  RawShmClient client(rig.path);
  REQUIRE(client.Join(MakeHello()).has_value());
  for (int i = 0; i < 1000 && client.SendObject(kDoorbell) == 0; ++i) continue;
  CHECK_THAT(client.WaitForEnd(), Catch::Contains("nobody slept"));
  rig.CheckAllGone();
}

TEST_CASE("Hostile client: absurd segments end its session, with the reason") {
  HostileRig rig;
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  const UniqueFd good = Memfd(4096, kSeals);
  const UniqueFd unsealed = Memfd(4096, F_SEAL_GROW);
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  int pipe_ends[2];
  REQUIRE(pipe2(pipe_ends, O_CLOEXEC) == 0);
  const UniqueFd pipe_in(pipe_ends[0]);
  const UniqueFd pipe_out(pipe_ends[1]);

  struct Case {
    SegmentNotice notice;
    std::vector<int> fds;
    const char* reason;
  };
  const Case cases[] = {
      {Register(1, 4096), {}, "without a descriptor"},
      {Register(0, 4096), {good.get()}, "segment id 0"},
      {Register(1, 4097), {good.get()}, "has 4096 bytes and should have 4097"},
      {Register(1, uint64_t{1} << 60), {good.get()}, "limits"},
      {Register(1, ~uint64_t{0}), {good.get()}, "limits"},
      {Register(1, 4096), {unsealed.get()}, "not sealed"},
      {Register(1, 0), {null.get()}, "not a memfd"},
      {Register(1, 4096), {pipe_in.get()}, "not a memfd"},
      {Register(1, 4096), {good.get(), good.get()}, "no message"},
      {SegmentNotice{99, 1, 4096}, {good.get()}, "unknown segment action"},
  };
  for (const Case& c : cases) {
    RawShmClient client(rig.path);
    REQUIRE(client.Join(MakeHello()).has_value());
    client.SendObject(c.notice, c.fds);
    CHECK_THAT(client.WaitForEnd(), Catch::Contains(c.reason));
  }
  {
    RawShmClient client(rig.path);
    REQUIRE(client.Join(MakeHello()).has_value());
    const int fds[] = {good.get()};
    client.SendObject(Register(5, 4096), fds);
    client.SendObject(Register(5, 4096), fds);
    CHECK_THAT(client.WaitForEnd(), Catch::Contains("segment 5 twice"));
  }
  {
    RawShmClient client(rig.path);
    REQUIRE(client.Join(MakeHello()).has_value());
    const int fds[] = {good.get()};
    for (uint32_t i = 1; i <= kPullSegmentsMax + 1; ++i) client.SendObject(Register(i, 4096), fds);
    CHECK_THAT(client.WaitForEnd(), Catch::Contains("limits"));
  }
  rig.CheckAllGone();
}

TEST_CASE("Hostile client: one that may only read leaves no buffers with the server") {
  HostileRig rig;
  // By both ends, which are in this process; the test itself has one.
  const auto open_memory = [] {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      count += std::filesystem::read_symlink(entry, gone).string().starts_with("/memfd:hostile");
    }
    return count;
  };
  const UniqueFd memory = Memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
  const int fds[] = {memory.get()};
  for (const Role role : {Role::kReadWrite, Role::kRead}) {
    rig.admission.set_role(role);
    RawShmClient client(rig.path);
    REQUIRE(client.Join(MakeHello()).has_value());
    for (uint32_t id = 1; id <= kPullSegmentsMax; ++id) {
      // Waited for, since the server's end takes some at a time.
      while (client.SendObject(Register(id, 4096), fds) != 0) rig.CheckHonest();
    }
    if (role == Role::kRead) {
      // Whatever it says of buffers is not heard.
      for (const uint32_t id : {1u, 1u, 0u})
        while (client.SendObject(Register(id, 4096), fds) != 0) rig.CheckHonest();
    }
    const size_t kept = role == Role::kRead ? 0 : kPullSegmentsMax;
    while (UnreadBytes(client.socket()) != 0 || open_memory() != 1 + kept) rig.CheckHonest();
    CHECK(std::atomic_ref(client.header().closed).load() == 0);
    client.CloseSocket();
    rig.CheckAllGone();
    while (open_memory() != 1) rig.CheckHonest();
  }
}

TEST_CASE("Hostile client: every way of leaving in the middle gives the session back") {
  HostileRig rig;
  for (int i = 0; i < 100; ++i) {
    RawShmClient silent(rig.path);
    RawShmClient joined(rig.path);
    REQUIRE(joined.Join(MakeHello()).has_value());
    joined.Publish(0, 1, 8);
    RawShmClient hasty(rig.path);
    hasty.SendObject(MakeHello());  // and away before the welcome
  }
  rig.CheckAllGone();
}

// A TCP socket whose last close() waits for an hour: it has bytes that nobody will read.
class LingeringSocket {
 public:
  LingeringSocket() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof(address);
    REQUIRE(bind(listener_.get(), raw, length) == 0);
    REQUIRE(listen(listener_.get(), 1) == 0);
    REQUIRE(getsockname(listener_.get(), raw, &length) == 0);
    fd_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const linger hour{1, 3600};
    REQUIRE(setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)) == 0);
    REQUIRE(connect(fd_.get(), raw, length) == 0);
    const std::string bytes(65536, 'x');
    while (send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
  }
  // Whoever takes it out of the packet then holds the last reference.
  template <typename T>
  void SendAway(RawShmClient& client, const T& object, size_t times = 1) {
    const std::vector<int> fds(times, fd_.get());
    if (client.SendObject(object, fds) != 0) {
      // The server has ended the connection already, so this test's close would be the last.
      const linger none{};
      setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    }
    fd_.Reset();
  }

 private:
  UniqueFd listener_;
  UniqueFd fd_;
};

TEST_CASE("Hostile client: a descriptor whose close blocks holds nobody up") {
  enum class Where { kHello, kNoHello, kBehindNoHello, kSegment, kSurplus, kBehindTheEnd };
  const Where where = GENERATE(Where::kHello, Where::kNoHello, Where::kBehindNoHello,
                               Where::kSegment, Where::kSurplus, Where::kBehindTheEnd);
  LingeringSocket lingering;
  HostileRig rig;
  RawShmClient client(rig.path);
  const bool joins = where >= Where::kSegment;
  if (joins) REQUIRE(client.Join(MakeHello()).has_value());
  switch (where) {
    case Where::kHello:
      lingering.SendAway(client, MakeHello());
      break;
    case Where::kNoHello:
      lingering.SendAway(client, 'x', kPacketFdsMax);
      break;
    case Where::kBehindNoHello:
      client.SendObject('x');
      lingering.SendAway(client, MakeHello());
      break;
    case Where::kSegment:
      lingering.SendAway(client, Register(9, 4096));
      break;
    case Where::kSurplus:
      lingering.SendAway(client, Register(9, 4096), kPacketFdsMax);
      break;
    case Where::kBehindTheEnd:
      client.SendObject(std::array<char, 7>{});
      lingering.SendAway(client, Register(9, 4096));
      break;
  }
  if (joins) {
    client.WaitForEnd();
  } else {
    REQUIRE(client.Receive().has_value());
  }
  client.CloseSocket();
  rig.CheckAllGone();
  KVD_REQUIRE_OK(ShmClientChannel::Connect(rig.path, MakeHello(), DeadlineNs()));
}

TEST_CASE("Socket: an empty packet is not the end") {
  int fds[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
  const UniqueFd here(fds[0]);
  UniqueFd peer(fds[1]);
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::vector<int> many(kPacketFdsMax, null.get());
  REQUIRE(SendPacket(peer.get(), {}) == 0);
  REQUIRE(SendPacket(peer.get(), {}, many) == 0);
  peer.Reset();
  const int on = 1;
  REQUIRE(setsockopt(here.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0);
  std::byte byte{};
  for (const size_t expected : {size_t{0}, kPacketFdsMax}) {
    Packet packet;
    REQUIRE(ReceivePacket(here.get(), std::span(&byte, 1), packet) == 0);
    CHECK(packet.bytes == 0);
    CHECK(packet.credentials);
    CHECK(packet.fd_count == expected);
    CHECK_FALSE(packet.fds_lost);
  }
  Packet end;
  REQUIRE(ReceivePacket(here.get(), std::span(&byte, 1), end) == 0);
  CHECK_FALSE(end.credentials);
}

// What a client sends and what the server pulls, step by step: nothing is polled in between.
class PullRig {
 public:
  PullRig() {
    ShmServerTransport::Options options;
    options.region_fd = region_.fd();
    transport_ =
        ShmServerTransport::Create(SocketClaim::Take(dir_.Join("s")).value(), options).value();
    KVD_REQUIRE_OK(transport_->Start(admission_));
    pump.emplace(transport_->endpoint(0));
    client.emplace(dir_.Join("s"));
    REQUIRE(client->Join(MakeHello()).has_value());
    channel = pump->Next(ServerEvent::Kind::kOpened).channel;
  }

  absl::Status Pull(uint32_t key, std::span<std::byte> into) {
    return transport_->endpoint(0).Pull(channel, PullSource{0, key, into.size()}, into.data(), 1);
  }

 private:
  TempDir dir_;
  FakeRegion region_;
  FakeAdmission admission_{region_, 16, 4608};
  std::unique_ptr<ShmServerTransport> transport_;

 public:
  std::optional<Pump> pump;
  std::optional<RawShmClient> client;
  ChannelId channel{};
};

TEST_CASE("Pull: a session that ends while its buffer is looked up gets no pull") {
  const bool garbage = GENERATE(true, false);
  const size_t bytes = GENERATE(4096, 8 << 20);  // copied at once, and by later polls
  PullRig rig;
  const UniqueFd memory = Memfd(bytes, F_SEAL_SHRINK);
  REQUIRE(pwrite(memory.get(), "value", 5, 0) == 5);
  const int fds[] = {memory.get()};
  rig.client->SendObject(Register(9, bytes), fds);
  if (garbage) {
    rig.client->SendObject(std::array<char, 7>{});
  } else {
    rig.client->CloseSocket();
  }
  std::vector<std::byte> into(bytes);
  if (GENERATE(true, false)) {
    CHECK(absl::IsUnavailable(rig.Pull(11, into)));
  } else {
    rig.Pull(9, into).IgnoreError();  // it may have begun before the end was seen
  }
  while (rig.pump->Next().kind != ServerEvent::Kind::kClosed) continue;
  // From here on its owner may use the memory for something else.
  std::fill(into.begin(), into.end(), std::byte{});
  CHECK(rig.pump->Quiet());
  CHECK(into == std::vector<std::byte>(bytes));
}

TEST_CASE("Pull: a buffer is found however much lies before it in the socket") {
  PullRig rig;
  const UniqueFd memory = Memfd(4096, F_SEAL_SHRINK);
  const int fds[] = {memory.get()};
  for (uint32_t id = 1; id <= 60; ++id) {
    REQUIRE(rig.client->SendObject(Register(id, 4096), fds) == 0);
  }
  std::vector<std::byte> into(4096);
  KVD_REQUIRE_OK(rig.Pull(60, into));
  CHECK(rig.pump->Next(ServerEvent::Kind::kPullDone).ok);
}

TEST_CASE("Pull: holes in a client's memory read as zeroes and take no memory") {
  HostileRig rig;
  RawShmClient client(rig.path);
  REQUIRE(client.Join(MakeHello()).has_value());
  constexpr uint64_t kBytes = 8 << 20;
  const UniqueFd holes = Memfd(kBytes, F_SEAL_SHRINK);
  const int fds[] = {holes.get()};
  client.SendObject(Register(9, kBytes), fds);
  PullCommand command;
  command.key = 9;
  command.length = kBytes;
  std::memcpy(client.slot(0) + sizeof(SlotHeader), &command, sizeof(command));
  client.Publish(0, 1, sizeof(command));
  auto* reply = reinterpret_cast<std::byte*>(&client.header()) + client.layout().replies_offset();
  while (std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(reply)).load() == 0) sched_yield();
  std::memcpy(&command, reply + sizeof(SlotHeader), sizeof(command));
  CHECK(command.failed == 0);
  CHECK(command.sum == Checksum64(std::vector<char>(kBytes).data(), kBytes, 0));
  struct stat facts;
  REQUIRE(fstat(holes.get(), &facts) == 0);
  CHECK(facts.st_blocks == 0);
}

}  // namespace kvd::test
