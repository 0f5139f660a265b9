// The sweep: memory of items whose time has come is back without anybody asking for them.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/model/reference_reader.h"
#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using test::ReferenceReader;
using test::TestStore;

StoreOptions With(uint64_t expiry_unix_us) {
  return {.condition = WriteCondition::kNone, .version = 0, .extras = {expiry_unix_us, 0}};
}

// What a poller does when it wakes.
void WorkUntilDone(TestStore& store) {
  store.RefreshClocks();
  while (store.shard().Work()) continue;
}

TEST_CASE("Shard: the memory of lapsed items is back within two seconds, and only theirs") {
  TestStore store;
  Random random(test::Seed());
  std::map<std::string, uint64_t> expiry_of;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "key" + std::to_string(i);
    expiry_of[key] = random.OneIn(4) ? 0 : store.now_unix_us() + random.Between(1, 60'000'000);
    REQUIRE(store.Put(key, std::string(random.Uniform(400), 'v'), With(expiry_of[key])).status ==
            StoreStatus::kOk);
  }
  REQUIRE(store.shard().stats().splits > 0);
  for (int second = 0; second <= 64; second += 2) {
    WorkUntilDone(store);
    const uint64_t now_us = store.now_unix_us();
    uint64_t due = 0;
    uint64_t not_yet = 0;
    for (const auto& [key, expiry_us] : expiry_of) {
      if (expiry_us != 0 && expiry_us + 2'000'000 <= now_us) ++due;
      if (expiry_us == 0 || expiry_us > now_us) ++not_yet;
    }
    const ShardStats stats = store.shard().stats();
    CHECK(stats.expired_items >= due);
    CHECK(stats.items >= not_yet);
    CHECK(stats.items + stats.expired_items == expiry_of.size());
    store.clock().AdvanceMs(2000);
  }
  KVD_REQUIRE_OK(store.CheckInvariants());
  CHECK(store.shard().stats().expiring_items == 0);
  for (const auto& [key, expiry_us] : expiry_of)
    CHECK(store.Get(key).has_value() == (expiry_us == 0));
}

TEST_CASE("Shard: an item whose expiry has a flipped bit is damaged, and not lapsed") {
  constexpr uint64_t kBit = uint64_t{1} << 60;
  TestStore store;
  Shard& shard = store.shard();
  const StoreResult put = store.Put("key", "value", With(kBit + 1));
  REQUIRE(put.status == StoreStatus::kOk);
  std::byte* const expiry = store.region().At(LocationOf(put.slot)) + kLongItemHeaderBytes;
  const uint64_t flipped = 1;
  std::memcpy(expiry, &flipped, sizeof(flipped));
  ItemView item;
  Slot slot;
  CHECK(shard.Find("key", store.Hash("key"), item, slot) == StoreStatus::kDamaged);
  for (int second = 0; second < 10; ++second) {
    store.clock().AdvanceMs(1000);
    WorkUntilDone(store);
  }
  CHECK(shard.Find("key", store.Hash("key"), item, slot) == StoreStatus::kDamaged);
  CHECK(shard.stats().expired_items == 0);
  CHECK(store.Delete("key").status == StoreStatus::kOk);
  CHECK(shard.Find("key", store.Hash("key"), item, slot) == StoreStatus::kNotFound);
}

TEST_CASE("Shard: a shard without items that expire asks for no look, one with them for the next") {
  TestStore store;
  Shard& shard = store.shard();
  store.Put("plain", "value");
  CHECK_FALSE(shard.next_sweep_unix_us().has_value());
  const uint64_t expiry = store.now_unix_us() + 3'600'000'000;
  store.Put("later", "value", With(expiry));
  WorkUntilDone(store);
  REQUIRE(shard.next_sweep_unix_us().has_value());
  CHECK(*shard.next_sweep_unix_us() >= expiry);
  CHECK(*shard.next_sweep_unix_us() <= expiry + 1'000'000);
  // An earlier one is looked for earlier, but not more than once a second.
  store.Put("soon", "value", With(store.now_unix_us() + 1));
  WorkUntilDone(store);
  const uint64_t next = *shard.next_sweep_unix_us();
  CHECK(next <= store.now_unix_us() + 1'000'000);
  CHECK(next > store.now_unix_us());
  store.clock().AdvanceMs(1000);
  WorkUntilDone(store);
  CHECK(shard.stats().expired_items == 1);
  CHECK(*shard.next_sweep_unix_us() >= expiry);
  store.Delete("later");
  CHECK_FALSE(shard.next_sweep_unix_us().has_value());
}

TEST_CASE("Shard: a touch moves an item's end, an overwrite forgets it, and the sweep follows") {
  TestStore store;
  const uint64_t soon = store.now_unix_us() + 1'000'000;
  const uint64_t later = soon + 100'000'000;
  store.Put("touched", "value", With(soon));
  store.Touch("touched", With(later));
  store.Put("kept", "value", With(soon));
  store.Touch("kept");
  store.Put("overwritten", "value", With(soon));
  store.Put("overwritten", "value");
  store.Put("shortened", "value", With(later));
  store.Touch("shortened", With(soon));
  store.clock().AdvanceMs(3000);
  WorkUntilDone(store);
  CHECK(store.shard().stats().expired_items == 1);
  CHECK(store.shard().stats().items == 3);
  CHECK_FALSE(store.Get("shortened").has_value());
  CHECK(store.Get("touched").has_value());
  store.clock().AdvanceMs(102'000);
  WorkUntilDone(store);
  CHECK(store.shard().stats().items == 2);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: the sweep keeps the bytes of a held item, and readers do not find the key") {
  TestStore store;
  ReferenceReader reader(store.region().base());
  const StoreResult put = store.Put("k", std::string(5000, 'v'), With(store.now_unix_us() + 1));
  store.shard().Hold(put.slot);
  store.clock().AdvanceMs(3000);
  WorkUntilDone(store);
  CHECK_FALSE(reader.Get("k").has_value());
  CHECK(store.shard().stats().heap_used_bytes > 5000);
  store.shard().Release(put.slot);
  CHECK(store.shard().stats().heap_used_bytes == 0);
  CHECK(store.shard().stats().expired_bytes > 5000);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: one step of work takes a bounded number of buckets") {
  TestStore store;
  for (int i = 0; i < 5000; ++i) {
    store.Put("key" + std::to_string(i), "value", With(store.now_unix_us() + 1));
  }
  store.clock().AdvanceMs(3000);
  store.RefreshClocks();
  uint64_t before = 0;
  while (store.shard().Work()) {
    const uint64_t now = store.shard().stats().expired_items;
    CHECK(now - before <= 8 * 40);
    before = now;
  }
  CHECK(store.shard().stats().items == 0);
}

TEST_CASE("ExpiryHints: the year 2106 and what lies beyond") {
  ExpiryHints hints;
  CHECK(hints.empty());
  CHECK_FALSE(hints.TakeDue(UINT64_MAX).has_value());
  CHECK(hints.NextDueUnixUs() == UINT64_MAX);
  hints.Reserve(3000);
  hints.Note(5, UINT64_MAX);
  CHECK_FALSE(hints.TakeDue(UINT64_MAX).has_value());
  hints.Note(2999, 4'000'000'001);
  CHECK_FALSE(hints.TakeDue(4'000'000'001).has_value());
  CHECK(hints.NextDueUnixUs() == 4'001'000'000);
  CHECK(hints.TakeDue(4'001'000'000) == 2999u);
  hints.Share(7, 2999);
  hints.Correct(2999, 0);
  CHECK(hints.TakeDue(4'001'000'000) == 7u);
  hints.Correct(7, 9'000'000'000);
  CHECK_FALSE(hints.TakeDue(4'001'000'000).has_value());
  CHECK(hints.NextDueUnixUs() == 9'000'000'000);
}

}  // namespace
}  // namespace kvd
