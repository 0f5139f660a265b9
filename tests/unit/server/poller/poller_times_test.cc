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

// Calls `late` before it answers the look that is `late_at` from now.
class LateClock : public FakeClock {
 public:
  int64_t NowMonotonicNs() const override {
    if (late_at != 0 && --late_at == 0) late();
    return FakeClock::NowMonotonicNs();
  }
  mutable int late_at = 0;
  std::function<void()> late;
};

// Pollers without threads: the test is their thread.
struct Kvd {
  explicit Kvd(uint32_t pollers, const FakeClock& clock, bool evict = false,
               int64_t slow_ns = 10 * kMs)
      : rig(
            pollers, PollMode::kBusy, [this] { return statistics(); }, /*started=*/0, evict,
            [this, slow_ns, &clock](PollerOptions& options) {
              options.processor_ns = [this, &clock] {
                ++processor_asked;
                return clock.FakeClock::NowMonotonicNs() - without_processor_ns;
              };
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

  // Of what the clock went on.
  int64_t without_processor_ns = 0;
  // How often the kernel would have been asked for a thread's processor time.
  int processor_asked = 0;
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
  // One line, of the one that kept the others waiting.
  const std::vector<SlowRequest> slow = kvd.slow.Newest();
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].requests == 3);
  CHECK(kvd.slow.total() == 3);
  CHECK(slow[0].operation == "stat");
  CHECK(slow[0].session_id != 0);
  CHECK(slow[0].at_unix_us == clock.NowUnixUs());
  CHECK(slow[0].phases.executing_ns == 20 * kMs);
  CHECK(slow[0].phases.total_ns() == 20 * kMs);
}

TEST_CASE(
    "Poller times: two of a batch that take long are a line each; the longer has the others") {
  FakeClock clock;
  Kvd kvd(1, clock);
  Peer peer(kvd.rig);
  HomeOf(kvd, peer);
  int64_t ms = 12;
  kvd.statistics = [&] {
    clock.AdvanceMs(ms += 4);
    return std::string("a 1\n");
  };
  peer.Send(Opcode::kPut, "first", "value");
  peer.Send(Opcode::kStat);
  peer.Send(Opcode::kStat);
  for (int i = 0; i < 3; ++i) kvd.Answer(peer);
  const std::vector<SlowRequest> slow = kvd.slow.Newest();
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].operation == "stat");
  CHECK(slow[0].requests == 3);
  CHECK(slow[0].phases.executing_ns == 20 * kMs);
  CHECK(slow[0].phases.waiting_ns == 16 * kMs);
}

TEST_CASE("Poller times: a stall is one line, which says so and counts whom it hit") {
  LateClock clock;
  Kvd kvd(1, clock);
  Peer peer(kvd.rig);
  HomeOf(kvd, peer);
  while (kvd.rig.peers[0]->Turn()) continue;
  constexpr uint32_t kPuts = 5;
  for (uint32_t i = 0; i < kPuts; ++i) peer.Send(Opcode::kPut, "key" + std::to_string(i), "value");
  // Between the look at which the batch is taken and that at which it ends.
  clock.late_at = 2;
  clock.late = [&] {
    clock.AdvanceMs(50);
    kvd.without_processor_ns += 49 * kMs;
  };
  for (uint32_t i = 0; i < kPuts; ++i) kvd.Answer(peer);
  const std::vector<SlowRequest> slow = kvd.slow.Newest();
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].requests == kPuts);
  CHECK(kvd.slow.total() == kPuts);
  CHECK(slow[0].phases.Longest() == "stalled");
  CHECK(slow[0].phases.stalled_ns == 49 * kMs);
  CHECK(slow[0].phases.executing_ns == 1 * kMs);
  const RequestCounters& counters = kvd.rig.peers[0]->counters();
  CHECK(counters.stalls.get() == 1);
  CHECK(counters.stalled_ns.get() == 49 * kMs);
  CHECK(counters.longest_stall_ns.get() == 49 * kMs);
}

TEST_CASE("Poller times: a stall in one whose own time is known is not taken for its work") {
  FakeClock clock;
  Kvd kvd(1, clock);
  Peer peer(kvd.rig);
  HomeOf(kvd, peer);
  kvd.statistics = [&] {
    clock.AdvanceMs(50);
    kvd.without_processor_ns += 49 * kMs;
    return std::string("a 1\n");
  };
  peer.Send(Opcode::kStat);
  const bool alone = GENERATE(true, false);
  if (!alone) peer.Send(Opcode::kPut, "key", "value");
  for (int i = 0; i < (alone ? 1 : 2); ++i) kvd.Answer(peer);
  const std::vector<SlowRequest> slow = kvd.slow.Newest();
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].operation == "stat");
  CHECK(slow[0].requests == (alone ? 1 : 2));
  CHECK(slow[0].phases.Longest() == "stalled");
  CHECK(slow[0].phases.executing_ns == 1 * kMs);
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
  // Answered in one step where both are this poller's: a line of the one that the other waited for.
  const SlowRequest& pulled = slow[pollers == 1 ? 0 : 1];
  CHECK(pulled.operation == "put");
  CHECK(pulled.requests == (pollers == 1 ? 2 : 1));
  CHECK(pulled.value_bytes == 100'000);
  CHECK(pulled.phases.pulling_ns > 0);
  if (pollers > 1) {
    CHECK(slow[0].value_bytes == 5);
    CHECK(slow[0].phases.pulling_ns == 0);
    CHECK(slow[0].phases.waiting_ns > pulled.phases.pulling_ns);
  }
  CHECK(kvd.Count(RequestKind::kPut) == 2);
  CHECK(kvd.Longest(RequestKind::kPut) >= static_cast<uint64_t>(slow[0].phases.total_ns()));
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

TEST_CASE("Poller times: a step that has only other pollers' mail began when it took that") {
  FakeClock clock;
  Kvd kvd(2, clock);
  Peer peer(kvd.rig);
  const std::string key = kvd.KeyOf(1 - HomeOf(kvd, peer));
  clock.AdvanceMs(20);
  const auto put = [&] {
    peer.Send(Opcode::kPut, key, "value");
    CHECK(kvd.Answer(peer).status() == ReplyStatus::kOk);
  };
  put();  // both look once, as it is time to
  const int asked = kvd.processor_asked;
  for (int i = 0; i < 10; ++i) put();
  CHECK(kvd.processor_asked == asked);
}

}  // namespace kvd::test
