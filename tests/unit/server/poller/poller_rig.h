// A server of pollers over shared memory in one process, and clients that speak the protocol by
// hand.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/protocol/judge_item.h"
#include "common/protocol/request_codec.h"
#include "common/transport/shm/shm_client_channel.h"
#include "common/transport/shm/shm_server_transport.h"
#include "server/poller/poller.h"
#include "server/session/admission_policy.h"
#include "server/store/region.h"
#include "tests/support/status_testing.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

namespace kvd::test {

inline int64_t DeadlineNs() { return RealClock::Get().NowMonotonicNs() + 60'000'000'000; }

class ServerRig {
 public:
  static constexpr uint64_t kMaxValue = 4 << 20;

  using Statistics = std::function<std::string()>;

  explicit ServerRig(
      uint32_t count, PollMode mode = PollMode::kAdaptive,
      const Statistics& statistics = [] { return std::string(9000, 's'); }, uint32_t started = ~0u,
      bool evict = false, const std::function<void(PollerOptions&)>& adjust = [](PollerOptions&) {},
      const Clock& clock = RealClock::Get()) {
    RegionOptions memory;
    memory.memory_bytes = 64 << 20;
    memory.hugepages = HugepagePolicy::kOff;
    memory.shard_count = count;
    region = Region::Create(memory).value();
    AdmissionPolicy::Options admission_options;
    admission_options.geometry = region->geometry();
    admission_options.max_value_bytes = kMaxValue;
    admission = std::make_unique<AdmissionPolicy>(admission_options, clock);
    ShmServerTransport::Options options;
    options.region_fd = region->fd();
    options.pollers = count;
    transport =
        ShmServerTransport::Create(SocketClaim::Take(dir.Join("s")).value(), options).value();
    PollerOptions poller_options;
    poller_options.mode = mode;
    poller_options.spin_ns = 20'000;
    poller_options.limits.max_value_bytes = kMaxValue;
    poller_options.geometry = region->geometry();
    poller_options.statistics = statistics;
    adjust(poller_options);
    for (uint32_t i = 0; i < count; ++i) {
      shards.push_back(Shard::Create(*region, i, clock, {.evict = evict}).value());
      pollers.push_back(
          Poller::Create(poller_options, i, transport->endpoint(i), *shards[i], clock, peers)
              .value());
      peers.push_back(pollers.back().get());
    }
    for (uint32_t i = 0; i < std::min(count, started); ++i) peers[i]->Start();
    KVD_REQUIRE_OK(transport->Start(*admission));
  }

  ~ServerRig() { Stop(); }

  void Stop() {
    transport->StopAccepting();
    for (Poller* poller : peers) poller->RequestStop();
    for (Poller* poller : peers) poller->Join();
  }

  void CheckShards() {
    for (const auto& shard : shards) KVD_REQUIRE_OK(shard->CheckInvariants());
  }

  TempDir dir;
  std::unique_ptr<Region> region;
  std::unique_ptr<AdmissionPolicy> admission;
  std::vector<std::unique_ptr<Shard>> shards;
  std::unique_ptr<ShmServerTransport> transport;
  std::vector<Poller*> peers;
  std::vector<std::unique_ptr<Poller>> pollers;
};

struct Reply {
  ReplyHeader header;
  std::string payload;
  ReplyStatus status() const { return static_cast<ReplyStatus>(header.status); }
};

// A client that speaks the protocol by hand.
class Peer {
 public:
  static uint64_t NewClientId() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }

  explicit Peer(ServerRig& rig, uint32_t credits = 16) : Peer(rig, credits, NewClientId()) {}
  Peer(ServerRig& rig, uint32_t credits, uint64_t client_id) {
    Hello hello{};
    hello.magic = kHelloMagic;
    hello.version_min = hello.version_max = kProtocolVersion;
    hello.client_id = client_id;
    hello.credits_wanted = credits;
    channel = ShmClientChannel::Connect(rig.dir.Join("s"), hello, DeadlineNs()).value();
  }

  uint64_t Send(RequestHeader header, std::string_view key, std::string_view value = {}) {
    header.request_id = ++last_id_;
    header.key_len = static_cast<uint16_t>(key.size());
    if ((header.flags & kRequestPull) == 0) header.value_len = value.size();
    KVD_REQUIRE_OK(channel->Send(FrameParts{std::as_bytes(std::span(&header, 1)), key, value}));
    return last_id_;
  }
  uint64_t Send(Opcode opcode, std::string_view key = {}, std::string_view value = {}) {
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(opcode);
    return Send(header, key, value);
  }

  Reply Receive() {
    for (;;) {
      const auto frame = channel->PollReply();
      if (frame.empty()) {
        KVD_REQUIRE_OK(channel->Wait(DeadlineNs()));
        continue;
      }
      ReplyView view;
      REQUIRE(DecodeReply(frame, view) == nullptr);
      return Reply{view.header, std::string(view.payload)};
    }
  }

  Reply Call(Opcode opcode, std::string_view key = {}, std::string_view value = {}) {
    const uint64_t id = Send(opcode, key, value);
    Reply reply = Receive();
    REQUIRE(reply.header.request_id == id);
    return reply;
  }

  // A PUT that the server pulls from a buffer of its own.
  Reply PutPulled(std::string_view key, std::string_view value, uint8_t flags = 0) {
    const TransferBuffer buffer = channel->Allocate(std::max<size_t>(value.size(), 1)).value();
    std::memcpy(buffer.bytes.data(), value.data(), value.size());
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kPut);
    header.flags = static_cast<uint8_t>(kRequestPull | flags);
    header.value_len = value.size();
    header.pull_address = buffer.address;
    header.pull_key = buffer.key;
    Send(header, key);
    Reply reply = Receive();
    channel->Free(buffer);
    return reply;
  }

  // The value of a key, by request, also if it is held.
  std::optional<std::string> Get(const ServerRig& rig, std::string_view key) {
    const Reply reply = Call(Opcode::kGet, key);
    if (reply.status() == ReplyStatus::kNotFound) return std::nullopt;
    REQUIRE(reply.status() == ReplyStatus::kOk);
    if ((reply.header.flags & kReplyInline) != 0) return reply.payload;
    REQUIRE((reply.header.flags & kReplyHeld) != 0);
    const std::string value = ReadHeld(rig, key, reply);
    CHECK(Call(Opcode::kRelease).status() == ReplyStatus::kOk);
    return value;
  }

  std::string ReadHeld(const ServerRig& rig, std::string_view key, const Reply& reply) {
    const uint64_t bytes = ItemBytesOf(reply.header.slot);
    std::vector<std::byte> copy(bytes);
    const ReadOp op{LocationOf(reply.header.slot), bytes, copy.data(), 1};
    KVD_REQUIRE_OK(channel->PostReads(std::span(&op, 1)));
    ReadCompletion done;
    REQUIRE(channel->PollReads(std::span(&done, 1)) == 1);
    ItemExpectation expected;
    expected.incarnation = rig.region->geometry().incarnation;
    expected.location = LocationOf(reply.header.slot);
    expected.key = key;
    expected.held_version = reply.header.version;
    ItemView item;
    REQUIRE(JudgeItem(copy, expected, item) == ItemVerdict::kCurrent);
    return std::string(item.value);
  }

  std::unique_ptr<ClientChannel> channel;

 private:
  uint64_t last_id_ = 0;
};

}  // namespace kvd::test
