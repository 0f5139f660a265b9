// Pollers with a real store over the shared-memory transport, in one process: every kind of
// request, from one poller and across pollers, in every polling mode.
#include "server/poller/poller.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "common/base/random.h"
#include "common/transport/shm/shm_client_channel.h"
#include "common/transport/shm/shm_server_transport.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/server/poller/poller_rig.h"

namespace kvd::test {
TEST_CASE("Poller: a client for whom there is no memory is closed with the reason, no other") {
  ServerRig rig(1, PollMode::kAdaptive, []() -> std::string { throw std::bad_alloc(); });
  Peer other(rig);
  Peer unlucky(rig);
  unlucky.Send(Opcode::kStat);
  absl::Status ended;
  while ((ended = unlucky.channel->Wait(DeadlineNs())).ok()) continue;
  KVD_REQUIRE_CODE(ended, kUnavailable);
  CHECK_THAT(MessageOf(ended), Catch::Contains("out of memory"));
  CHECK(other.Call(Opcode::kPut, "key", "value").status() == ReplyStatus::kOk);
  CHECK(other.Get(rig, "key") == "value");
}

TEST_CASE("Poller: one that got no thread holds up nobody's end") {
  ServerRig rig(
      3, PollMode::kAdaptive, [] { return std::string(); }, 1);
  rig.Stop();
  CHECK(rig.admission->sessions() == 0);
}

TEST_CASE("Poller: random requests over one and two pollers agree with a map, in every mode") {
  const uint32_t pollers = GENERATE(1u, 2u);
  const PollMode mode = GENERATE(PollMode::kAdaptive, PollMode::kEvent, PollMode::kBusy);
  if (mode == PollMode::kBusy && pollers > 1) return;  // starves the client on a small machine
  ServerRig rig(pollers, mode);
  Random random(Seed());
  std::map<std::string, std::string> expected;
  {
    Peer one(rig);
    Peer two(rig);
    for (int i = 0; i < 1500; ++i) {
      Peer& peer = random.OneIn(2) ? one : two;
      const std::string key = "key" + std::to_string(random.Uniform(60));
      switch (random.Uniform(5)) {
        case 0: {
          const std::string value(random.Uniform(4000), static_cast<char>('a' + i % 26));
          REQUIRE(peer.Call(Opcode::kPut, key, value).status() == ReplyStatus::kOk);
          expected[key] = value;
          break;
        }
        case 1: {
          const std::string value(random.Uniform(300'000), static_cast<char>('A' + i % 26));
          REQUIRE(peer.PutPulled(key, value).status() == ReplyStatus::kOk);
          expected[key] = value;
          break;
        }
        case 2: {
          const ReplyStatus status = peer.Call(Opcode::kDelete, key).status();
          REQUIRE(status == (expected.erase(key) == 1 ? ReplyStatus::kOk : ReplyStatus::kNotFound));
          break;
        }
        case 3: {
          const bool there = peer.Call(Opcode::kExists, key).status() == ReplyStatus::kOk;
          REQUIRE(there == (expected.count(key) == 1));
          break;
        }
        default: {
          const auto value = peer.Get(rig, key);
          const auto at = expected.find(key);
          REQUIRE(value.has_value() == (at != expected.end()));
          if (value.has_value()) REQUIRE(*value == at->second);
        }
      }
    }
  }
  rig.Stop();
  rig.CheckShards();
  uint64_t forwarded = 0;
  for (const Poller* poller : rig.peers) forwarded += poller->counters().forwarded.get();
  CHECK((forwarded > 0) == (pollers > 1));
  CHECK(rig.admission->sessions() == 0);
}

TEST_CASE("Poller: pipelined requests are all answered, each once") {
  ServerRig rig(GENERATE(1u, 2u));
  Peer peer(rig);
  for (int round = 0; round < 200; ++round) {
    std::map<uint64_t, int> outstanding;
    for (int i = 0; i < 16; ++i) {
      outstanding[peer.Send(Opcode::kPut, std::to_string(round * 16 + i), "value")] = 1;
    }
    while (!outstanding.empty()) {
      const Reply reply = peer.Receive();
      REQUIRE(reply.status() == ReplyStatus::kOk);
      REQUIRE(outstanding.erase(reply.header.request_id) == 1);
    }
  }
  CHECK(peer.Call(Opcode::kGet, "3199").payload == "value");
}

TEST_CASE("Poller: a malformed frame is answered, its session ends, and others go on") {
  ServerRig rig(1);
  Peer honest(rig);
  for (const bool has_id : {true, false}) {
    Peer peer(rig);
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kGet);
    header.request_id = 9;
    header.reserved = 1;
    const size_t bytes = has_id ? sizeof(header) : 10;
    KVD_REQUIRE_OK(
        peer.channel->Send(FrameParts{std::as_bytes(std::span(&header, 1)).first(bytes), {}, {}}));
    if (has_id) {
      const Reply reply = peer.Receive();
      CHECK(reply.header.request_id == 9);
      CHECK(reply.status() == ReplyStatus::kMalformed);
    }
    KVD_REQUIRE_CODE(peer.channel->Wait(DeadlineNs()), kDataLoss);
    CHECK_THAT(MessageOf(peer.channel->status()), Catch::Contains("malformed request"));
  }
  CHECK(honest.Call(Opcode::kPing, {}, "still").payload == "still");
  CHECK(rig.peers[0]->counters().malformed.get() == 2);
}

TEST_CASE("Poller: what a client sent behind a malformed frame is not executed") {
  ServerRig rig(1);
  Peer honest(rig);
  for (int i = 0; i < 20; ++i) {
    Peer peer(rig);
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kGet);
    header.reserved = 1;
    peer.Send(header, "k");
    const std::string key = "behind" + std::to_string(i);
    RequestHeader put{};
    put.opcode = static_cast<uint8_t>(Opcode::kPut);
    put.request_id = 77;
    put.key_len = static_cast<uint16_t>(key.size());
    // Not sent at all if the session has ended by now.
    peer.channel->Send(FrameParts{std::as_bytes(std::span(&put, 1)), key, {}}).IgnoreError();
    while (peer.channel->status().ok()) sched_yield();
    CHECK(honest.Call(Opcode::kExists, key).status() == ReplyStatus::kNotFound);
  }
}

TEST_CASE("Poller: an opcode of a later version is kUnsupported and the session goes on") {
  ServerRig rig(1);
  Peer peer(rig);
  RequestHeader header{};
  header.opcode = 99;
  peer.Send(header, {});
  CHECK(peer.Receive().status() == ReplyStatus::kUnsupported);
  CHECK(peer.Call(Opcode::kPing, {}, "echo").payload == "echo");
}

TEST_CASE("Poller: a PUT whose value cannot be pulled is told so, and its session ends") {
  ServerRig rig(GENERATE(1u, 2u));
  Peer other(rig);
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kPut);
  header.flags = kRequestPull;
  header.value_len = 100'000;
  header.pull_key = 12345;
  for (int i = 0; i < 20; ++i) {
    const std::string key = std::to_string(i);
    Peer peer(rig);
    peer.Send(header, key);
    // Behind one that may come again nothing is executed. Not sent at all if the session is over.
    RequestHeader behind{};
    behind.opcode = static_cast<uint8_t>(Opcode::kPut);
    behind.request_id = 77;
    behind.key_len = static_cast<uint16_t>(key.size());
    peer.channel->Send(FrameParts{std::as_bytes(std::span(&behind, 1)), key, {}}).IgnoreError();
    CHECK(peer.Receive().status() == ReplyStatus::kPullFailed);
    KVD_REQUIRE_CODE(peer.channel->Wait(DeadlineNs()), kUnavailable);
    CHECK_THAT(MessageOf(peer.channel->status()), Catch::Contains("could not be read"));
    CHECK(other.Call(Opcode::kExists, key).status() == ReplyStatus::kNotFound);
  }
  Peer peer(rig);
  header.value_len = ServerRig::kMaxValue + 1;
  peer.Send(header, "large");
  const Reply reply = peer.Receive();
  CHECK(reply.status() == ReplyStatus::kTooLarge);
  CHECK(reply.header.value_len == ServerRig::kMaxValue);
  rig.Stop();
  rig.CheckShards();
}

TEST_CASE("Poller: writes of one session to one key take effect in the order of the requests") {
  // Pulled and not, in any mixture, as many as there are credits: their versions grow in that
  // order.
  ServerRig rig(GENERATE(1u, 2u));
  Peer peer(rig);
  Random random(Seed());
  const TransferBuffer buffer = peer.channel->Allocate(ServerRig::kMaxValue).value();
  for (int round = 0; round < 100; ++round) {
    std::map<uint64_t, std::string> key_of;
    for (int i = 0; i < 16; ++i) {
      const std::string key = std::to_string(random.Uniform(4));
      RequestHeader header{};
      header.opcode = static_cast<uint8_t>(random.OneIn(8) ? Opcode::kAppend : Opcode::kPut);
      if (random.OneIn(3)) {
        header.flags = kRequestPull;
        header.value_len = 1 + random.Uniform(random.OneIn(4) ? 3'000'000 : 100'000);
        header.pull_address = buffer.address;
        header.pull_key = buffer.key;
      }
      const bool pulled = header.flags != 0;
      key_of[peer.Send(header, key, pulled ? "" : "small")] = key;
    }
    std::map<uint64_t, uint64_t> version_of;
    while (version_of.size() < key_of.size()) {
      const Reply reply = peer.Receive();
      if (reply.status() == ReplyStatus::kTooLarge) {  // what APPEND would have made
        version_of[reply.header.request_id] = 0;
        continue;
      }
      REQUIRE(reply.status() == ReplyStatus::kOk);
      version_of[reply.header.request_id] = reply.header.version;
    }
    std::map<std::string, uint64_t> latest;
    for (const auto& [id, version] : version_of) {
      if (version == 0) continue;
      uint64_t& before = latest[key_of.at(id)];
      REQUIRE(version > before);
      before = version;
    }
  }
  peer.channel->Free(buffer);
  rig.Stop();
  rig.CheckShards();
}

TEST_CASE("Poller: a held item can be read after it was overwritten, one a session") {
  ServerRig rig(GENERATE(1u, 2u));
  Peer peer(rig);
  const std::string first(50'000, '1');
  const std::string second(60'000, '2');
  for (int i = 0; i < 8; ++i) {
    const std::string key = "k" + std::to_string(i);
    peer.PutPulled(key, first);
    const Reply held = peer.Call(Opcode::kGet, key);
    REQUIRE((held.header.flags & kReplyHeld) != 0);
    peer.PutPulled(key, second);
    peer.PutPulled(key, first);
    CHECK(peer.ReadHeld(rig, key, held) == first);
  }
  // Each GET gave the one before back; the last is given back by the session's end.
  peer.channel.reset();
  while (rig.admission->sessions() != 0) sched_yield();
  rig.Stop();
  rig.CheckShards();
}

TEST_CASE("Poller: sessions that die at any point leave nothing behind") {
  ServerRig rig(GENERATE(1u, 2u));
  Random random(Seed());
  const uint64_t free_before = rig.region->free_bytes();
  for (int i = 0; i < 100; ++i) {
    Peer peer(rig);
    const TransferBuffer buffer = peer.channel->Allocate(3 << 20).value();
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kPut);
    header.flags = kRequestPull;
    header.value_len = 3 << 20;
    header.pull_address = buffer.address;
    header.pull_key = buffer.key;
    // Several at once: some are pulled, some are on their way between pollers, when the end comes.
    const uint64_t requests = random.Uniform(4);
    for (uint64_t k = 0; k < requests; ++k) {
      peer.Send(header, "big" + std::to_string(random.Uniform(3)));
    }
    if (random.OneIn(2)) peer.Send(Opcode::kGet, "big0");
    if (requests > 0 && random.OneIn(2)) peer.Receive();
  }
  while (rig.admission->sessions() != 0) sched_yield();
  {
    Peer peer(rig);
    for (const char* key : {"big0", "big1", "big2"}) peer.Call(Opcode::kDelete, key);
    CHECK(peer.Call(Opcode::kPing).status() == ReplyStatus::kOk);
  }
  rig.Stop();
  rig.CheckShards();
  CHECK(rig.region->free_bytes() + (1 << 20) >= free_before);
}

TEST_CASE("Poller: a write that is sent again in the next session takes effect once") {
  // The second try may come to another poller than the first; the owner of the key knows both.
  ServerRig rig(GENERATE(1u, 2u));
  for (int round = 0; round < 8; ++round) {
    const uint64_t client_id = Peer::NewClientId();
    const std::string key = "key" + std::to_string(round);
    Reply first;
    {
      Peer peer(rig, 16, client_id);
      CHECK((peer.channel->welcome().flags & kWelcomeRepliesKept) == 0);
      first = peer.Call(Opcode::kPut, key, "one");
    }
    {
      Peer other(rig);
      REQUIRE(other.Call(Opcode::kPut, key, "two").status() == ReplyStatus::kOk);
    }
    Peer again(rig, 16, client_id);
    CHECK((again.channel->welcome().flags & kWelcomeRepliesKept) != 0);
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kPut);
    header.flags = kRequestRepeat;
    again.Send(header, key, "one");  // under the id of the first
    const Reply repeated = again.Receive();
    CHECK(std::memcmp(&repeated.header, &first.header, sizeof(ReplyHeader)) == 0);
    CHECK(again.Call(Opcode::kGet, key).payload == "two");
    // One that did not come through is executed now.
    again.Send(header, key, "three");
    CHECK(again.Receive().status() == ReplyStatus::kOk);
    CHECK(again.Call(Opcode::kGet, key).payload == "three");
  }
  rig.Stop();
  rig.CheckShards();
}

TEST_CASE("Poller: a pulled PUT whose first try broke off is executed by its repeat, once") {
  ServerRig rig(GENERATE(1u, 2u));
  const uint64_t client_id = Peer::NewClientId();
  const std::string value(200'000, 'v');
  ReplyHeader first;
  {
    Peer peer(rig, 16, client_id);
    first = peer.PutPulled("key", value).header;
  }
  Peer again(rig, 16, client_id);
  const Reply repeated = again.PutPulled("key", value, kRequestRepeat);
  CHECK(std::memcmp(&repeated.header, &first, sizeof(ReplyHeader)) == 0);
  rig.Stop();
  rig.CheckShards();
}

TEST_CASE("Poller: a session that its client has replaced is ended when it writes") {
  ServerRig rig(GENERATE(1u, 2u));
  const uint64_t client_id = Peer::NewClientId();
  Peer early(rig, 16, client_id);
  Peer late(rig, 16, client_id);
  REQUIRE(late.Call(Opcode::kPut, "key", "new").status() == ReplyStatus::kOk);
  CHECK(early.Call(Opcode::kPut, "key", "old").status() == ReplyStatus::kNotPermitted);
  KVD_REQUIRE_CODE(early.channel->Wait(DeadlineNs()), kUnavailable);
  CHECK_THAT(MessageOf(early.channel->status()), Catch::Contains("a later session"));
  CHECK(late.Call(Opcode::kGet, "key").payload == "new");
}

TEST_CASE("Poller: the statistics come whole, in parts") {
  ServerRig rig(1);
  Peer peer(rig);
  std::string text;
  do {
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kStat);
    header.argument = text.size();
    peer.Send(header, {});
    const Reply reply = peer.Receive();
    REQUIRE(reply.header.value_len == 9000);
    text += reply.payload;
  } while (text.size() < 9000);
  CHECK(text == std::string(9000, 's'));
}

TEST_CASE("Poller: stopping answers what has come and tells every client why") {
  ServerRig rig(GENERATE(1u, 2u), GENERATE(PollMode::kAdaptive, PollMode::kEvent));
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 6; ++i) peers.push_back(std::make_unique<Peer>(rig));
  for (const auto& peer : peers) {
    for (int i = 0; i < 10; ++i) peer->Send(Opcode::kPut, "k" + std::to_string(i), "v");
  }
  rig.Stop();
  for (const auto& peer : peers) {
    for (int i = 0; i < 10; ++i) CHECK(peer->Receive().status() == ReplyStatus::kOk);
    KVD_REQUIRE_CODE(peer->channel->Wait(DeadlineNs()), kUnavailable);
    CHECK_THAT(MessageOf(peer->channel->status()), Catch::Contains("shutting down"));
  }
  CHECK(rig.admission->sessions() == 0);
}

TEST_CASE("Poller: an idle one sleeps, and a request from a peer's mailbox wakes it") {
  ServerRig rig(2, PollMode::kEvent);
  Peer peer(rig);
  for (int i = 0; i < 3000; ++i) {
    REQUIRE(peer.Call(Opcode::kPut, std::to_string(i), "v").status() == ReplyStatus::kOk);
  }
  CHECK(rig.peers[0]->counters().sleeps.get() > 100);
  CHECK(rig.peers[1]->counters().sleeps.get() > 100);
}

TEST_CASE("Poller: a session has so many bytes on their way at once, and one value however long") {
  ServerRig rig(
      1, PollMode::kAdaptive, [] { return std::string(); }, /*started=*/0, /*evict=*/false,
      [](PollerOptions& options) { options.pull_bytes_max = 3 << 20; });
  Peer peer(rig);
  const TransferBuffer buffer = peer.channel->Allocate(ServerRig::kMaxValue).value();
  const auto send = [&](const std::string& key, uint64_t bytes) {
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kPut);
    header.flags = kRequestPull;
    header.value_len = bytes;
    header.pull_address = buffer.address;
    header.pull_key = buffer.key;
    return peer.Send(header, key);
  };
  // All are there before the poller begins, so it meets them together: 2 and 1 MiB are on their way
  // when the others come.
  const uint64_t first = send("a", 2 << 20);
  const uint64_t second = send("b", 1 << 20);
  const uint64_t third = send("c", 4096);
  rig.peers[0]->Start();
  std::map<uint64_t, ReplyStatus> status_of;
  while (status_of.size() < 3) {
    const Reply reply = peer.Receive();
    status_of[reply.header.request_id] = reply.status();
    if (reply.header.request_id == third)
      CHECK_THAT(reply.payload, Catch::Contains("--max_pull_bytes"));
  }
  CHECK(status_of[first] == ReplyStatus::kOk);
  CHECK(status_of[second] == ReplyStatus::kOk);
  CHECK(status_of[third] == ReplyStatus::kBusy);
  // What has arrived counts no more, and one alone may be longer than all that is allowed.
  for (int i = 0; i < 3; ++i) {
    send("d", 4 << 20);
    CHECK(peer.Receive().status() == ReplyStatus::kOk);
  }
}

TEST_CASE(
    "Poller: a session that sends nothing for its idle time ends, and is told why; others go on") {
  ServerRig rig(
      1, GENERATE(PollMode::kAdaptive, PollMode::kEvent), [] { return std::string(); }, ~0u,
      /*evict=*/false, [](PollerOptions& options) { options.idle_ns = 200'000'000; });
  Peer busy(rig);
  const int64_t before_ns = RealClock::Get().NowMonotonicNs();
  Peer idle(rig);
  while (idle.channel->status().ok()) busy.Call(Opcode::kPing);
  // Never before that time, however soon after its beginning it is looked at.
  CHECK(RealClock::Get().NowMonotonicNs() - before_ns >= 200'000'000);
  CHECK_THAT(MessageOf(idle.channel->status()), Catch::Contains("--idle_timeout"));
  CHECK(busy.channel->status().ok());
}

TEST_CASE("Poller: sessions are ended by their ids, at once, and told why; others go on") {
  ServerRig rig(2);
  Peer one(rig);
  Peer two(rig);
  Peer three(rig);
  const std::vector<uint64_t> ids = {one.channel->welcome().session_id,
                                     three.channel->welcome().session_id};
  // From an answer on the session has begun.
  for (Peer* peer : {&one, &two, &three}) peer->Call(Opcode::kPing);
  for (Poller* poller : rig.peers) {
    poller->EndSessions(ids, absl::PermissionDeniedError("sent away"));
  }
  for (Peer* ended : {&one, &three}) {
    while (ended->channel->status().ok()) sched_yield();
    CHECK_THAT(MessageOf(ended->channel->status()), Catch::Contains("sent away"));
  }
  CHECK(two.Call(Opcode::kPing).status() == ReplyStatus::kOk);
}

TEST_CASE("Poller: a session that was sent away before its poller knew of it ends as it begins") {
  std::atomic<uint64_t> expelled{0};
  ServerRig rig(
      1, PollMode::kAdaptive, [] { return std::string(); }, /*started=*/0, /*evict=*/false,
      [&](PollerOptions& options) {
        options.why_expelled = [&](uint64_t id) {
          return id == expelled ? absl::PermissionDeniedError("sent away") : absl::OkStatus();
        };
      });
  Peer one(rig);
  Peer two(rig);
  expelled = one.channel->welcome().session_id;
  rig.peers[0]->EndSessions({expelled}, absl::PermissionDeniedError("sent away"));
  rig.peers[0]->Start();
  while (one.channel->status().ok()) sched_yield();
  CHECK_THAT(MessageOf(one.channel->status()), Catch::Contains("sent away"));
  CHECK(two.Call(Opcode::kPing).status() == ReplyStatus::kOk);
}

}  // namespace kvd::test
