#include "server/session/session_table.h"

#include <cstring>
#include <string>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

ServerEvent Opened(uint64_t session_id, const Hello* hello = nullptr,
                   const PeerIdentity* peer = nullptr) {
  ServerEvent event;
  event.kind = ServerEvent::Kind::kOpened;
  event.session_id = session_id;
  event.hello = hello;
  event.peer = peer;
  return event;
}

}  // namespace

TEST_CASE("Sessions: a client's name gets into the log only as far as it is harmless") {
  SessionTable table;
  Hello hello{};
  std::memcpy(hello.name, "a\nb\x1b[31m", 8);
  PeerIdentity peer;
  peer.pid = 12;
  peer.uid = 34;
  table.Open(ChannelId{1}, Opened(1, &hello, &peer), 0);
  CHECK(table.Find(ChannelId{1})->name == "a?b?[31m (pid 12, uid 34)");
  std::memset(hello.name, 'x', sizeof(hello.name));  // no NUL at the end
  table.Open(ChannelId{2}, Opened(2, &hello), 0);
  CHECK(table.Find(ChannelId{2})->name == std::string(24, 'x'));
}

TEST_CASE("Sessions: a session holds one item; a new one replaces it and the old one comes back") {
  SessionTable table;
  table.Open(ChannelId{1}, Opened(1), 0);
  CHECK_FALSE(table.Hold(ChannelId{1}, 0, 100, 0).has_value());
  const auto before = table.Hold(ChannelId{1}, 1, 200, 0);
  REQUIRE(before.has_value());
  CHECK(before->slot == 100);
  const auto held = table.TakeHeld(ChannelId{1});
  REQUIRE(held.has_value());
  CHECK(held->slot == 200);
  CHECK(held->shard == 1);
  CHECK_FALSE(table.TakeHeld(ChannelId{1}).has_value());
  CHECK_FALSE(table.next_lease_end_ns().has_value());
}

TEST_CASE("Sessions: leases end in their order, and with the session") {
  SessionTable table;
  for (uint64_t i = 1; i <= 3; ++i) {
    table.Open(ChannelId{i}, Opened(i), 0);
    table.Hold(ChannelId{i}, 0, i, static_cast<int64_t>(i) * 1000);
  }
  CHECK(table.next_lease_end_ns() == SessionTable::kLeaseNs + 1000);
  CHECK(table.TakeExpired(SessionTable::kLeaseNs + 999).empty());
  const auto closed = table.Close(ChannelId{1});
  REQUIRE(closed.has_value());
  CHECK(closed->slot == 1);
  const auto expired = table.TakeExpired(SessionTable::kLeaseNs + 2000);
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].slot == 2);
  CHECK(table.next_lease_end_ns() == SessionTable::kLeaseNs + 3000);
  CHECK(table.size() == 2);
  CHECK(table.Find(ChannelId{1}) == nullptr);
  CHECK_FALSE(table.Close(ChannelId{1}).has_value());
}

TEST_CASE("Sessions: the lease of a long item is longer, and does not hold up others") {
  SessionTable table;
  for (uint64_t i = 1; i <= 3; ++i) table.Open(ChannelId{i}, Opened(i), 0);
  const Slot long_item = PackSlot(0, uint64_t{1} << 30, RegionOffset{1 << 20});
  table.Hold(ChannelId{1}, 0, long_item, 1000);
  table.Hold(ChannelId{2}, 0, 2, 2000);
  table.Hold(ChannelId{3}, 0, 3, 1500);
  CHECK(SessionTable::LeaseNs(long_item) == SessionTable::kLeaseNs + 64'000'000'000);
  CHECK(table.next_lease_end_ns() == SessionTable::kLeaseNs + 1500);
  const auto expired = table.TakeExpired(SessionTable::kLeaseNs + 2000);
  REQUIRE(expired.size() == 2);
  CHECK(expired[0].slot == 3);
  CHECK(expired[1].slot == 2);
  CHECK(table.next_lease_end_ns() == SessionTable::LeaseNs(long_item) + 1000);
}

}  // namespace kvd::test
