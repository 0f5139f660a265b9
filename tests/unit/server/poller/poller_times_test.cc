// How long requests took, and where: by a clock that moves when the test says so.
#include <memory>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/protocol/geometry.h"
#include "server/operations/request_times.h"
#include "tests/support/fake_clock.h"
#include "tests/unit/server/poller/poller_rig.h"

namespace kvd::test {
namespace {

constexpr int64_t kMs = 1'000'000;

// Each look at it takes a millisecond.
class TickingClock : public FakeClock {
 public:
  int64_t NowMonotonicNs() const override {
    const_cast<TickingClock*>(this)->AdvanceMs(1);
    return FakeClock::NowMonotonicNs();
  }
};

// Pollers without threads: the test is their thread.
struct Kvd {
  explicit Kvd(uint32_t pollers, const Clock& clock, bool evict = false, int64_t slow_ns = 10 * kMs)
      : rig(
            pollers, PollMode::kBusy, [this] { return statistics(); }, /*started=*/0, evict,
            [this, slow_ns](PollerOptions& options) {
              options.slow_ns = slow_ns;
              options.slow = [this](SlowRequest request) { slow.Add(std::move(request)); };
              options.slow_text = [this] { return DescribeSlowRequests(slow.Newest()); };
            },
            clock) {}

  void Turn() {
    for (Poller* poller : rig.peers) poller->Turn();
  }
  // A reply that is on its way.
  Reply Answer(Peer& peer) {
    for (;;) {
      Turn();
      const auto frame = peer.channel->PollReply();
      if (frame.empty()) continue;
      ReplyView view;
      REQUIRE(DecodeReply(frame, view) == nullptr);
      return Reply{view.header, std::string(view.payload)};
    }
  }
  uint64_t Count(RequestKind kind) const {
    LatencyHistogram sum;
    for (const Poller* poller : rig.peers) sum.Merge(poller->times().of(kind));
    return sum.count();
  }
  uint64_t Longest(RequestKind kind) const {
    uint64_t longest = 0;
    for (const Poller* poller : rig.peers)
      longest = std::max(longest, poller->times().of(kind).max());
    return longest;
  }
  std::string KeyOf(uint32_t shard) const {
    const Geometry geometry = rig.region->geometry();
    for (int i = 0;; ++i) {
      const std::string key = "key" + std::to_string(i);
      if (ShardOf(HashKey(key, geometry.hash_seed()), geometry.shard_count) == shard) return key;
    }
  }

  std::function<std::string()> statistics = [] { return std::string("a 1\n"); };
  SlowLog slow;
  ServerRig rig;
};

// The poller that has the peer's session, which is there from now on.
uint32_t HomeOf(Kvd& kvd, Peer& peer) {
  peer.Send(Opcode::kPing);
  kvd.Answer(peer);
  const auto pings = [&](size_t poller) {
    return kvd.rig.peers[poller]->counters().requests[static_cast<size_t>(Opcode::kPing)].get();
  };
  return pings(0) == 1 ? 0 : 1;
}

RequestHeader PullOf(const TransferBuffer& buffer, uint64_t bytes) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kPut);
  header.flags = kRequestPull;
  header.value_len = bytes;
  header.pull_address = buffer.address;
  header.pull_key = buffer.key;
  return header;
}

}  // namespace

TEST_CASE("Poller times: every request counts once, by its kind, from being taken to its reply") {
  const uint32_t pollers = GENERATE(1u, 2u);
  FakeClock clock;
  Kvd kvd(pollers, clock);
  Peer peer(kvd.rig);
  const struct {
    Opcode opcode;
    RequestKind kind;
  } kinds[] = {
      {Opcode::kPut, RequestKind::kPut},       {Opcode::kIncrement, RequestKind::kIncrement},
      {Opcode::kAppend, RequestKind::kAppend}, {Opcode::kPrepend, RequestKind::kPrepend},
      {Opcode::kTouch, RequestKind::kTouch},   {Opcode::kDelete, RequestKind::kDelete},
      {Opcode::kFlush, RequestKind::kFlush},   {Opcode::kGet, RequestKind::kOther}};
  const uint64_t others_before = kvd.Count(RequestKind::kOther);
  for (const auto& [opcode, kind] : kinds) {
    for (uint32_t shard = 0; shard < pollers; ++shard) {
      const bool has_value =
          opcode == Opcode::kPut || opcode == Opcode::kAppend || opcode == Opcode::kPrepend;
      peer.Send(opcode, opcode == Opcode::kFlush ? "" : kvd.KeyOf(shard), has_value ? "1" : "");
      kvd.Answer(peer);
    }
    CAPTURE(static_cast<int>(kind));
    CHECK(kvd.Count(kind) == pollers + (kind == RequestKind::kOther ? others_before : 0));
  }
  CHECK(kvd.slow.total() == 0);
}

TEST_CASE(
    "Poller times: what a batch answers took as long as its step; whose fault that was is told") {
  FakeClock clock;
  Kvd kvd(1, clock);
  Peer peer(kvd.rig);
  HomeOf(kvd, peer);
  kvd.statistics = [&clock] {
    clock.AdvanceMs(20);
    return std::string("a 1\n");
  };
  peer.Send(Opcode::kPut, "first", "value");
  peer.Send(Opcode::kStat);
  peer.Send(Opcode::kPut, "second", "longer value");
  for (int i = 0; i < 3; ++i) kvd.Answer(peer);
  CHECK(kvd.Longest(RequestKind::kPut) == 20 * kMs);
  CHECK(kvd.Longest(RequestKind::kOther) == 20 * kMs);
  const std::vector<SlowRequest> slow = kvd.slow.Newest();
  REQUIRE(slow.size() == 3);
  CHECK(slow[2].operation == "put");
  CHECK(slow[2].key_bytes == 5);
  CHECK(slow[2].value_bytes == 5);
  CHECK(slow[2].session_id != 0);
  CHECK(slow[2].at_unix_us == clock.NowUnixUs());
  CHECK(slow[2].phases.waiting_ns == 20 * kMs);
  CHECK(slow[2].phases.executing_ns == 0);
  CHECK(slow[1].operation == "stat");
  CHECK(slow[1].phases.executing_ns == 20 * kMs);
  CHECK(slow[1].phases.waiting_ns == 0);
  CHECK(slow[0].operation == "put");
  CHECK(slow[0].value_bytes == 12);
  CHECK(slow[0].phases.waiting_ns == 20 * kMs);
}

TEST_CASE("Poller times: one that comes alone has all of its step to itself; the limit counts") {
  FakeClock clock;
  Kvd kvd(1, clock);
  Peer peer(kvd.rig);
  int64_t ns = 10 * kMs - 1;
  kvd.statistics = [&] {
    clock.AdvanceNs(ns);
    return std::string("a 1\n");
  };
  peer.Send(Opcode::kStat);
  kvd.Answer(peer);
  CHECK(kvd.slow.total() == 0);
  ns = 10 * kMs;
  peer.Send(Opcode::kStat);
  kvd.Answer(peer);
  REQUIRE(kvd.slow.total() == 1);
  CHECK(kvd.slow.Newest()[0].phases.executing_ns == 10 * kMs);
  CHECK(kvd.slow.Newest()[0].phases.total_ns() == 10 * kMs);
}

TEST_CASE("Poller times: a request of another poller's shard waits in its mailbox") {
  FakeClock clock;
  Kvd kvd(2, clock);
  Peer peer(kvd.rig);
  const uint32_t home = HomeOf(kvd, peer);
  peer.Send(Opcode::kPut, kvd.KeyOf(1 - home), "value");
  kvd.rig.peers[home]->Turn();
  clock.AdvanceMs(15);
  kvd.rig.peers[1 - home]->Turn();
  clock.AdvanceMs(5);
  kvd.Answer(peer);
  CHECK(kvd.Longest(RequestKind::kPut) == 20 * kMs);
  REQUIRE(kvd.slow.total() == 1);
  const SlowRequest slow = kvd.slow.Newest()[0];
  CHECK(slow.operation == "put");
  CHECK(slow.value_bytes == 5);
  CHECK(slow.phases.waiting_ns == 20 * kMs);
  CHECK(slow.phases.Longest() == "waiting");
}

TEST_CASE(
    "Poller times: a value that is pulled, here and for another poller; who waits behind it") {
  const uint32_t pollers = GENERATE(1u, 2u);
  TickingClock clock;
  Kvd kvd(pollers, clock, /*evict=*/false, /*slow_ns=*/1);
  Peer peer(kvd.rig);
  const uint32_t home = HomeOf(kvd, peer);
  const std::string key = kvd.KeyOf(pollers == 1 ? 0 : 1 - home);
  const TransferBuffer buffer = peer.channel->Allocate(100'000).value();
  peer.Send(PullOf(buffer, 100'000), key);
  peer.Send(Opcode::kPut, key, "after");
  const uint64_t before = kvd.slow.total();
  kvd.Answer(peer);
  kvd.Answer(peer);
  REQUIRE(kvd.slow.total() == before + 2);
  const std::vector<SlowRequest> slow = kvd.slow.Newest();
  CHECK(slow[0].operation == "put");
  CHECK(slow[0].value_bytes == 5);
  CHECK(slow[0].phases.pulling_ns == 0);
  CHECK(slow[0].phases.waiting_ns > slow[1].phases.pulling_ns);
  CHECK(slow[1].operation == "put");
  CHECK(slow[1].value_bytes == 100'000);
  CHECK(slow[1].phases.pulling_ns > 0);
  CHECK(kvd.Count(RequestKind::kPut) == 2);
  CHECK(kvd.Longest(RequestKind::kPut) == static_cast<uint64_t>(slow[0].phases.total_ns()));
}

TEST_CASE("Poller times: making room by evicting others is told apart from executing") {
  TickingClock clock;
  Kvd kvd(1, clock, /*evict=*/true, /*slow_ns=*/2 * kMs);
  Peer peer(kvd.rig);
  const std::string value(4000, 'v');
  uint64_t evicting = 0, before = 0;
  for (int i = 0; i < 40'000 && evicting == 0; ++i) {
    peer.Send(Opcode::kPut, "key" + std::to_string(i), value);
    kvd.Answer(peer);
    if (kvd.slow.total() == before) continue;
    before = kvd.slow.total();
    evicting += kvd.slow.Newest()[0].phases.evicting_ns > 0 ? 1 : 0;
    const bool has_evicted = kvd.rig.shards[0]->stats().evicted_items > 0;
    if (!has_evicted) REQUIRE(evicting == 0);
  }
  CHECK(evicting == 1);
  CHECK(kvd.rig.shards[0]->stats().evicted_items > 0);
}

TEST_CASE("Poller times: the slow log is a text of its own; there are no others") {
  FakeClock clock;
  Kvd kvd(1, clock, false, /*slow_ns=*/0);
  Peer peer(kvd.rig);
  peer.Send(Opcode::kPut, "key", "value");
  kvd.Answer(peer);
  peer.Send(Opcode::kSessions, kSlowLogText);
  const Reply reply = kvd.Answer(peer);
  CHECK(reply.status() == ReplyStatus::kOk);
  CHECK(reply.payload == DescribeSlowRequests(std::vector<SlowRequest>{kvd.slow.Newest().back()}));
  CHECK_THAT(reply.payload, Catch::Contains("operation=put"));
  peer.Send(Opcode::kSessions, "fast");
  CHECK(kvd.Answer(peer).status() == ReplyStatus::kUnsupported);
}

}  // namespace kvd::test
