// Conditions, expiry, FLUSH and HITS over pollers: what crosses from one to another.
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/base/hash.h"
#include "tests/unit/server/poller/poller_rig.h"

namespace kvd::test {
namespace {

uint64_t UnixUs() { return static_cast<uint64_t>(RealClock::Get().NowUnixUs()); }

Reply Ask(Peer& peer, RequestHeader header, std::string_view key, std::string_view value = {}) {
  peer.Send(header, key, value);
  return peer.Receive();
}

RequestHeader Header(Opcode opcode, uint8_t flags = 0) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  header.flags = flags;
  return header;
}

std::string HashesOf(const ServerRig& rig, const std::vector<std::string>& keys) {
  std::string hashes;
  for (const std::string& key : keys) {
    const uint64_t hash = HashKey(key, rig.region->geometry().hash_seed());
    hashes.append(reinterpret_cast<const char*>(&hash), sizeof(hash));
  }
  return hashes;
}

}  // namespace

TEST_CASE("Poller: PING says the time") {
  ServerRig rig(1);
  Peer peer(rig);
  const uint64_t before = UnixUs();
  const uint64_t said = peer.Call(Opcode::kPing).header.result;
  CHECK(said >= before);
  CHECK(said <= UnixUs());
}

TEST_CASE("Poller: counters, conditions and touches on every shard") {
  ServerRig rig(3);
  Peer peer(rig);
  for (int i = 0; i < 60; ++i) {
    const std::string key = "key" + std::to_string(i);
    RequestHeader add = Header(Opcode::kIncrement);
    add.argument = static_cast<uint64_t>(i);
    CHECK(Ask(peer, add, key).header.result == static_cast<uint64_t>(i));
    const Reply sum = Ask(peer, add, key);
    CHECK(sum.header.result == static_cast<uint64_t>(2 * i));
    RequestHeader swap = Header(Opcode::kPut, kRequestIfVersion);
    swap.compare_version = sum.header.version;
    CHECK(Ask(peer, swap, key, "swapped").status() == ReplyStatus::kOk);
    const Reply stale = Ask(peer, swap, key, "stale");
    CHECK(stale.status() == ReplyStatus::kConditionFailed);
    CHECK(stale.header.version > sum.header.version);
    RequestHeader touch = Header(Opcode::kTouch, kRequestExpiry | kRequestWithValue);
    touch.expiry_unix_us = UnixUs() + 3'600'000'000;
    const Reply touched = Ask(peer, touch, key);
    CHECK(touched.payload == "swapped");
    CHECK(touched.header.expiry_unix_us == touch.expiry_unix_us);
  }
  rig.Stop();
  rig.CheckShards();
}

TEST_CASE("Poller: a touched value too long for a frame is held, wherever its shard is") {
  ServerRig rig(2);
  Peer peer(rig);
  for (int i = 0; i < 8; ++i) {
    const std::string key = "key" + std::to_string(i);
    const std::string value(50'000, static_cast<char>('a' + i));
    REQUIRE(peer.PutPulled(key, value).status() == ReplyStatus::kOk);
    const Reply touched = Ask(peer, Header(Opcode::kTouch, kRequestWithValue), key);
    REQUIRE((touched.header.flags & kReplyHeld) != 0);
    REQUIRE(peer.Call(Opcode::kDelete, key).status() == ReplyStatus::kOk);
    CHECK(peer.ReadHeld(rig, key, touched) == value);
    CHECK(peer.Call(Opcode::kRelease).status() == ReplyStatus::kOk);
  }
  rig.Stop();
  rig.CheckShards();
  for (const auto& shard : rig.shards) CHECK(shard->stats().heap_used_bytes == 0);
}

TEST_CASE("Poller: FLUSH goes through all shards, and refuses cursors that nobody gave") {
  ServerRig rig(3);
  Peer peer(rig);
  for (int i = 0; i < 3000; ++i) {
    REQUIRE(peer.Call(Opcode::kPut, (i % 2 == 0 ? "even" : "odd") + std::to_string(i), "value")
                .status() == ReplyStatus::kOk);
  }
  RequestHeader flush = Header(Opcode::kFlush);
  uint64_t flushed = 0;
  do {
    const Reply reply = Ask(peer, flush, "even");
    REQUIRE(reply.status() == ReplyStatus::kOk);
    flushed += reply.header.value_len;
    flush.argument = reply.header.result;
  } while (flush.argument != 0);
  CHECK(flushed == 1500);
  CHECK_FALSE(peer.Get(rig, "even0").has_value());
  CHECK(peer.Get(rig, "odd1") == "value");
  for (const uint64_t cursor : {uint64_t{3} << 32, ~uint64_t{0}, uint64_t{1} << 63,
                                uint64_t{0xffffffff}, uint64_t{1} << 32 | 0x7fffffff}) {
    flush.argument = cursor;
    CHECK(Ask(peer, flush, "").status() == ReplyStatus::kUnsupported);
  }
  CHECK(peer.Get(rig, "odd1") == "value");
  rig.Stop();
  rig.CheckShards();
}

TEST_CASE("Poller: HITS reach the shards of their keys where kvd evicts, and are refused if odd") {
  for (const bool evict : {false, true}) {
    ServerRig rig(
        2, PollMode::kAdaptive, [] { return std::string(); }, ~0u, evict);
    Peer peer(rig);
    std::vector<std::string> keys;
    for (int i = 0; i < 100; ++i) keys.push_back("key" + std::to_string(i));
    for (const std::string& key : keys) peer.Call(Opcode::kPut, key, "value");
    const std::string hashes = HashesOf(rig, keys);
    const Reply reply = peer.Call(Opcode::kHits, {}, hashes);
    CHECK(reply.status() == ReplyStatus::kOk);
    CHECK(reply.header.result == (evict ? 1 : 0));
    CHECK(peer.Call(Opcode::kHits, {}, {}).status() == ReplyStatus::kOk);
    CHECK(peer.Call(Opcode::kHits, {}, hashes.substr(3)).status() == ReplyStatus::kUnsupported);
    // More than may be under way at once.
    for (int i = 0; i < 2000; ++i) peer.Call(Opcode::kHits, {}, hashes.substr(0, 8));
    uint64_t noted = 0;
    for (const auto& poller : rig.pollers) noted += poller->counters().sampled_hits.get();
    CHECK(noted == (evict ? 2100 : 0));
    CHECK(peer.Get(rig, "key1") == "value");
    rig.Stop();
    rig.CheckShards();
  }
}

TEST_CASE("Poller: what a session asks is counted, and what it says; sums outlive the session") {
  const bool evict = GENERATE(false, true);
  std::map<uint64_t, std::shared_ptr<const SessionCounters>> counters;
  std::mutex mutex;
  ServerRig rig(
      1, PollMode::kAdaptive, [] { return std::string(); }, ~0u, evict,
      [&](PollerOptions& options) {
        options.session_begins = [&](uint64_t id, std::shared_ptr<const SessionCounters> of) {
          const std::lock_guard lock(mutex);
          counters[id] = std::move(of);
        };
      });
  const auto counters_of = [&](Peer& peer) {
    peer.Call(Opcode::kPing);  // it has begun
    const std::lock_guard lock(mutex);
    return counters.at(peer.channel->welcome().session_id);
  };
  const auto report = [](Peer& peer, uint64_t gets, uint64_t counts = kReportedCounts) {
    std::string value(sizeof(ReportedCounts), '\0');
    std::memcpy(value.data(), &gets, sizeof(gets));
    RequestHeader header = Header(Opcode::kHits);
    header.argument = counts;
    return Ask(peer, header, {}, value + "8 bytes.").status();
  };
  const auto sum = [&] { return rig.pollers[0]->counters().reported.get().gets; };

  auto peer = std::make_unique<Peer>(rig);
  const auto seen = counters_of(*peer);
  REQUIRE(peer->Call(Opcode::kPut, "key", "value").status() == ReplyStatus::kOk);
  REQUIRE(peer->Get(rig, "key") == "value");
  CHECK(seen->requests.get() == 3);
  CHECK(seen->writes.get() == 1);
  CHECK(seen->received_bytes.get() == 3 * sizeof(RequestHeader) + 3 + 5 + 3);
  CHECK(seen->sent_bytes.get() == 3 * sizeof(ReplyHeader) + 5);
  const uint64_t before = seen->received_bytes.get();
  REQUIRE(peer->PutPulled("key", std::string(100'000, 'v')).status() == ReplyStatus::kOk);
  CHECK(seen->received_bytes.get() == before + sizeof(RequestHeader) + 3 + 100'000);

  CHECK(report(*peer, 10) == ReplyStatus::kOk);
  CHECK(report(*peer, 10) == ReplyStatus::kOk);
  CHECK(report(*peer, 25) == ReplyStatus::kOk);
  CHECK(seen->reported().gets == 25);
  CHECK(sum() == 25);
  CHECK(rig.pollers[0]->counters().sampled_hits.get() == (evict ? 3 : 0));
  // One that counts wrong is told so, changes nothing, and may go on.
  CHECK(report(*peer, 99, kReportedCounts + 2) == ReplyStatus::kUnsupported);
  CHECK(report(*peer, 99, ~uint64_t{0}) == ReplyStatus::kUnsupported);
  CHECK(sum() == 25);

  Peer liar(rig);
  CHECK(report(liar, ~uint64_t{0}) == ReplyStatus::kOk);
  CHECK(sum() == 25);
  CHECK(rig.pollers[0]->counters().disbelieved_reports.get() == 1);
  CHECK(seen->reported().gets == 25);
  peer.reset();
  Peer next(rig);
  CHECK(report(next, 5) == ReplyStatus::kOk);
  CHECK(counters_of(next)->reported().gets == 5);
  CHECK(sum() == 30);
  rig.Stop();
}

TEST_CASE("Poller: a sleeping one wakes for items whose time has come") {
  const PollMode mode = GENERATE(PollMode::kAdaptive, PollMode::kEvent);
  ServerRig rig(1, mode);
  Peer peer(rig);
  RequestHeader put = Header(Opcode::kPut, kRequestExpiry);
  for (int i = 0; i < 100; ++i) {
    put.expiry_unix_us = UnixUs() + 1000;
    REQUIRE(Ask(peer, put, "key" + std::to_string(i), "value").status() == ReplyStatus::kOk);
  }
  const int64_t deadline_ns = DeadlineNs();
  while (rig.shards[0]->stats().items != 0 && RealClock::Get().NowMonotonicNs() < deadline_ns) {
    std::this_thread::yield();
  }
  CHECK(rig.shards[0]->stats().items == 0);
  CHECK(rig.pollers[0]->counters().sleeps.get() > 0);
  rig.Stop();
  rig.CheckShards();
}

}  // namespace kvd::test
