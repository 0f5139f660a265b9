// One-sided READs of the region, and the server's pulls of a client's buffer.
#include <deque>

#include "common/base/checksum.h"
#include "common/base/random.h"
#include "tests/conformance/echo_server.h"
#include "tests/conformance/rig.h"

namespace kvd::test {

using Kind = ServerEvent::Kind;

namespace {

void FillRandom(std::span<std::byte> bytes, Random& random) {
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    const uint64_t word = random.Next();
    std::memcpy(bytes.data() + at, &word, 8);
  }
  for (; at < bytes.size(); ++at) bytes[at] = static_cast<std::byte>(random.Next());
}

PullCommand CommandFor(const TransferBuffer& buffer, uint64_t offset, uint64_t length) {
  PullCommand command;
  command.address = buffer.address + offset;
  command.key = buffer.key;
  command.length = length;
  return command;
}

PullCommand Ask(ClientChannel& client, const PullCommand& command) {
  KVD_REQUIRE_OK(client.Send(FrameParts{std::as_bytes(std::span(&command, 1)), {}, {}}));
  const std::string reply = Receive(client).value();
  PullCommand answer;
  REQUIRE(reply.size() == sizeof(answer));
  std::memcpy(&answer, reply.data(), sizeof(answer));
  return answer;
}

// True if the pull was refused, or ended the session where the transport can only do that.
bool PullFails(Rig& rig, ClientChannel& client, const PullCommand& command) {
  KVD_REQUIRE_OK(client.Send(FrameParts{std::as_bytes(std::span(&command, 1)), {}, {}}));
  const absl::StatusOr<std::string> reply = Receive(client);
  if (!reply.ok()) return rig.transport().bad_pull_ends_session() && !client.status().ok();
  PullCommand answer;
  REQUIRE(reply->size() == sizeof(answer));
  std::memcpy(&answer, reply->data(), sizeof(answer));
  return answer.failed == 1;
}

}  // namespace

TEST_CASE("Transport: READs bring the region's bytes and complete with their ids") {
  Rig rig;
  Random random(Seed());
  const auto client = rig.Connect();
  auto buffer = client->Allocate(1 << 20);
  KVD_REQUIRE_OK(buffer);
  REQUIRE(client->reads_max() >= 1);
  for (int round = 0; round < 200; ++round) {
    const size_t count = random.Between(1, std::min<size_t>(client->reads_max(), 16));
    std::vector<ReadOp> ops;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t length = random.Between(1, 4096) * 8;
      const uint64_t offset =
          FakeRegion::kDataOffset +
          random.Uniform((FakeRegion::kBytes - FakeRegion::kDataOffset - length) / 8 + 1) * 8;
      ops.push_back(
          ReadOp{RegionOffset{offset}, length, buffer->bytes.data() + i * 32768, 100 + i});
    }
    KVD_REQUIRE_OK(client->PostReads(ops));
    size_t completed = 0;
    while (completed < count) {
      ReadCompletion done[4];
      const size_t got = client->PollReads(done);
      for (size_t i = 0; i < got; ++i) {
        REQUIRE(done[i].ok);
        const ReadOp& op = ops.at(done[i].id - 100);
        for (uint64_t word = 0; word < op.length / 8; ++word) {
          uint64_t value;
          std::memcpy(&value, op.into + word * 8, 8);
          REQUIRE(value == FakeRegion::Word(ToBytes(op.offset) / 8 + word));
        }
      }
      completed += got;
      if (got == 0) KVD_REQUIRE_OK(client->Wait(DeadlineNs()));
    }
  }
}

TEST_CASE("Transport: a READ outside the region is refused, and none of its chain is posted") {
  Rig rig;
  const auto client = rig.Connect();
  auto buffer = client->Allocate(4096);
  KVD_REQUIRE_OK(buffer);
  const ReadOp good{RegionOffset{0}, 64, buffer->bytes.data(), 1};
  for (const ReadOp& bad :
       {ReadOp{RegionOffset{FakeRegion::kBytes}, 8, buffer->bytes.data(), 2},
        ReadOp{RegionOffset{FakeRegion::kBytes - 8}, 16, buffer->bytes.data(), 2},
        ReadOp{RegionOffset{~uint64_t{7}}, 16, buffer->bytes.data(), 2}}) {
    const ReadOp ops[] = {good, bad};
    KVD_REQUIRE_CODE(client->PostReads(ops), kInvalidArgument);
  }
  ReadCompletion done[2];
  CHECK(client->PollReads(done) == 0);
  CHECK(client->status().ok());
}

TEST_CASE("Transport: more READs than reads_max are refused until some are polled") {
  Rig rig;
  const auto client = rig.Connect();
  auto buffer = client->Allocate(4096);
  KVD_REQUIRE_OK(buffer);
  const std::vector<ReadOp> ops(client->reads_max() + 1,
                                ReadOp{RegionOffset{4096}, 8, buffer->bytes.data(), 9});
  KVD_REQUIRE_CODE(client->PostReads(ops), kResourceExhausted);
  const auto fitting = std::span(ops).first(client->reads_max());
  KVD_REQUIRE_OK(client->PostReads(fitting));
  KVD_REQUIRE_CODE(client->PostReads(fitting.first(1)), kResourceExhausted);
  ReadCompletion done[1];
  while (client->PollReads(done) == 0) KVD_REQUIRE_OK(client->Wait(DeadlineNs()));
  KVD_REQUIRE_OK(client->PostReads(fitting.first(1)));
}

TEST_CASE("Transport: pulls of 1 byte to 64 MiB bring exactly the client's bytes") {
  Rig rig;
  Random random(Seed());
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy, rig.region.landing());
  const auto client = rig.Connect();
  auto buffer = client->Allocate((64 << 20) + 4096);
  KVD_REQUIRE_OK(buffer);
  FillRandom(buffer->bytes, random);
  std::vector<uint64_t> sizes = {1,     2,     7,       4095,          4096,
                                 65536, 65537, 1 << 20, (1 << 20) + 1, 64 << 20};
  for (int i = 0; i < 30; ++i)
    sizes.push_back(random.Between(1, uint64_t{1} << random.Uniform(22)));
  for (const uint64_t size : sizes) {
    const uint64_t offset = random.Uniform(4096);
    const PullCommand answer = Ask(*client, CommandFor(*buffer, offset, size));
    INFO("size " << size << " offset " << offset);
    REQUIRE(answer.failed == 0);
    REQUIRE(answer.sum == Checksum64(buffer->bytes.data() + offset, size, 0));
  }
}

TEST_CASE("Transport: several pulls at once, from several buffers, do not mix") {
  Rig rig;
  Random random(Seed());
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy, rig.region.landing());
  const auto client = rig.Connect();
  std::vector<TransferBuffer> buffers;
  for (int i = 0; i < 4; ++i) {
    auto buffer = client->Allocate(3 << 20);
    KVD_REQUIRE_OK(buffer);
    FillRandom(buffer->bytes, random);
    buffers.push_back(*buffer);
  }
  for (const TransferBuffer& buffer : buffers) {
    const PullCommand command = CommandFor(buffer, 0, buffer.bytes.size());
    KVD_REQUIRE_OK(client->Send(FrameParts{std::as_bytes(std::span(&command, 1)), {}, {}}));
  }
  std::vector<uint64_t> expected;
  std::vector<uint64_t> sums;
  for (const TransferBuffer& buffer : buffers) {
    expected.push_back(Checksum64(buffer.bytes.data(), buffer.bytes.size(), 0));
    const std::string reply = Receive(*client).value();
    PullCommand answer;
    std::memcpy(&answer, reply.data(), sizeof(answer));
    sums.push_back(answer.sum);
  }
  std::sort(expected.begin(), expected.end());
  std::sort(sums.begin(), sums.end());
  CHECK(sums == expected);
}

TEST_CASE("Transport: a pull from where no buffer is fails, and nobody else's suffers") {
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy, rig.region.landing());
  const auto other = rig.Connect();
  auto others = other->Allocate(8192);
  KVD_REQUIRE_OK(others);
  struct Bad {
    uint64_t offset, length;
    uint32_t key_off;
  };
  for (const Bad& bad :
       {Bad{1, 8192, 0}, Bad{~uint64_t{0}, 2, 0}, Bad{1 << 20, 1, 0}, Bad{0, 8, 1000}}) {
    const auto client = rig.Connect();
    auto buffer = client->Allocate(8192);
    KVD_REQUIRE_OK(buffer);
    CHECK(Ask(*client, CommandFor(*buffer, 0, 8192)).failed == 0);
    PullCommand command = CommandFor(*buffer, bad.offset, bad.length);
    command.key += bad.key_off;
    CHECK(PullFails(rig, *client, command));
    if (!rig.transport().bad_pull_ends_session()) {
      CHECK(Ask(*client, CommandFor(*buffer, 0, 8192)).failed == 0);
      CHECK(client->status().ok());
    }
    CHECK(Ask(*other, CommandFor(*others, 0, 8192)).failed == 0);
  }
}

TEST_CASE("Transport: buffers may come and go; one that was freed cannot be pulled from") {
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy, rig.region.landing());
  auto client = rig.Connect();
  for (int i = 0; i < 500; ++i) {
    auto buffer = client->Allocate(5000);
    KVD_REQUIRE_OK(buffer);
    REQUIRE(reinterpret_cast<uintptr_t>(buffer->bytes.data()) % 4096 == 0);
    std::memset(buffer->bytes.data(), i, buffer->bytes.size());
    const PullCommand answer = Ask(*client, CommandFor(*buffer, 0, 5000));
    REQUIRE(answer.failed == 0);
    REQUIRE(answer.sum == Checksum64(buffer->bytes.data(), 5000, 0));
    client->Free(*buffer);
    // The server may hear of it a little later; a loop without end is a server that never does.
    if (i % 100 == 0) {
      while (!PullFails(rig, *client, CommandFor(*buffer, 0, 5000))) continue;
      if (!client->status().ok()) client = rig.Connect();
    }
  }
}

TEST_CASE("Transport: more buffers than a session may have are refused by name") {
  Rig rig;
  EchoServer server(rig.endpoint(), EchoServer::Mode::kSleepy, rig.region.landing());
  const auto client = rig.Connect();
  std::vector<TransferBuffer> buffers;
  absl::Status refused;
  while (refused.ok() && buffers.size() < 100000) {
    auto buffer = client->Allocate(4096);
    refused = buffer.status();
    if (buffer.ok()) buffers.push_back(*buffer);
  }
  KVD_REQUIRE_CODE(refused, kResourceExhausted);
  client->Free(buffers.back());
  KVD_REQUIRE_OK(client->Allocate(4096));
  KVD_REQUIRE_CODE(client->Allocate(size_t{1} << 50), kResourceExhausted);
  KVD_REQUIRE_OK(client->Send(Frame("alive")));
  CHECK(Receive(*client).value() == "alive");
}

TEST_CASE("Transport: a client that dies in the middle of a pull ends it") {
  Rig rig;
  Pump pump(rig.endpoint());
  auto client = rig.Connect();
  const ChannelId id = pump.Next(Kind::kOpened).channel;
  auto buffer = client->Allocate(32 << 20);
  KVD_REQUIRE_OK(buffer);
  std::byte* into = rig.region.landing().data();
  KVD_REQUIRE_OK(
      rig.endpoint().Pull(id, PullSource{buffer->address, buffer->key, 32 << 20}, into, 7));
  client.reset();
  // Either the pull was done first or it was not; after kClosed there is nothing more of it.
  Pump::Event event = pump.Next();
  if (event.kind == Kind::kPullDone) event = pump.Next();
  CHECK(event.kind == Kind::kClosed);
  CHECK(pump.Quiet());
}

}  // namespace kvd::test
