// Conditions of writes, and items with expiry and user flags, as PUT, DELETE and reservations treat
// them.
#include <cstring>
#include <string>

#include "tests/model/reference_reader.h"
#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using test::ReferenceReader;
using test::TestStore;

StoreOptions If(WriteCondition condition, uint64_t version = 0) {
  return {.condition = condition, .version = version, .extras = {}};
}
StoreOptions With(uint64_t expiry_unix_us, uint32_t user_flags = 0) {
  return {.condition = WriteCondition::kNone, .version = 0, .extras = {expiry_unix_us, user_flags}};
}

ItemView ItemOf(TestStore& store, std::string_view key) {
  ItemView item;
  Slot slot = kEmptySlot;
  REQUIRE(store.ShardOfKey(key).Find(key, store.Hash(key), item, slot) == StoreStatus::kOk);
  return item;
}

TEST_CASE("Shard: a PUT takes place only if its condition holds") {
  TestStore store;
  // No item.
  CHECK(store.Put("k", "a", If(WriteCondition::kIfPresent)).status == StoreStatus::kNotFound);
  CHECK(store.Put("k", "a", If(WriteCondition::kIfVersion, 7)).status == StoreStatus::kNotFound);
  CHECK_FALSE(store.Get("k").has_value());
  const StoreResult first = store.Put("k", "a", If(WriteCondition::kIfAbsent));
  REQUIRE(first.status == StoreStatus::kOk);

  // An item.
  const StoreResult absent = store.Put("k", "b", If(WriteCondition::kIfAbsent));
  CHECK(absent.status == StoreStatus::kConditionFailed);
  CHECK(absent.version == first.version);
  const StoreResult other = store.Put("k", "b", If(WriteCondition::kIfVersion, first.version + 1));
  CHECK(other.status == StoreStatus::kConditionFailed);
  CHECK(other.version == first.version);
  CHECK(store.Get("k") == "a");
  const StoreResult second = store.Put("k", "b", If(WriteCondition::kIfVersion, first.version));
  REQUIRE(second.status == StoreStatus::kOk);
  CHECK(store.Put("k", "c", If(WriteCondition::kIfVersion, first.version)).status ==
        StoreStatus::kConditionFailed);
  CHECK(store.Put("k", "d", If(WriteCondition::kIfPresent)).status == StoreStatus::kOk);
  CHECK(store.Get("k") == "d");
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: a version never fits again, also not across delete and insertion") {
  TestStore store;
  const StoreResult first = store.Put("k", "a");
  store.Delete("k");
  CHECK(store.Put("k", "b", If(WriteCondition::kIfVersion, first.version)).status ==
        StoreStatus::kNotFound);
  store.Put("k", "a");
  CHECK(store.Put("k", "b", If(WriteCondition::kIfVersion, first.version)).status ==
        StoreStatus::kConditionFailed);
}

TEST_CASE("Shard: a DELETE of a version deletes that one only") {
  TestStore store;
  CHECK(store.Delete("k", If(WriteCondition::kIfVersion, 3)).status == StoreStatus::kNotFound);
  const StoreResult first = store.Put("k", "a");
  const StoreResult second = store.Put("k", "b");
  const StoreResult stale = store.Delete("k", If(WriteCondition::kIfVersion, first.version));
  CHECK(stale.status == StoreStatus::kConditionFailed);
  CHECK(stale.version == second.version);
  CHECK(store.Get("k") == "b");
  CHECK(store.Delete("k", If(WriteCondition::kIfVersion, second.version)).status ==
        StoreStatus::kOk);
  CHECK_FALSE(store.Get("k").has_value());
}

TEST_CASE("Shard: a PUT in two halves fails early, and again if the key has changed meanwhile") {
  TestStore store;
  Shard& shard = store.shard();
  const uint64_t hash = store.Hash("k");
  const StoreResult first = store.Put("k", "old");
  Reservation reservation;
  const StoreResult early = shard.Reserve("k", hash, 3, reservation, If(WriteCondition::kIfAbsent));
  CHECK(early.status == StoreStatus::kConditionFailed);
  CHECK(early.version == first.version);

  const StoreOptions if_first = If(WriteCondition::kIfVersion, first.version);
  REQUIRE(shard.Reserve("k", hash, 3, reservation, if_first).status == StoreStatus::kOk);
  std::memcpy(reservation.value, "new", 3);
  const StoreResult between = store.Put("k", "other");
  const StoreResult late = shard.Commit(reservation);
  CHECK(late.status == StoreStatus::kConditionFailed);
  CHECK(late.version == between.version);
  CHECK(store.Get("k") == "other");
  CHECK(shard.stats().heap_used_bytes == 0);

  const StoreOptions if_between = If(WriteCondition::kIfVersion, between.version);
  REQUIRE(shard.Reserve("k", hash, 3, reservation, if_between).status == StoreStatus::kOk);
  std::memcpy(reservation.value, "new", 3);
  CHECK(shard.Commit(reservation).status == StoreStatus::kOk);
  CHECK(store.Get("k") == "new");
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: expiry and user flags are the item's, in every combination and both ways") {
  TestStore store;
  ReferenceReader reader(store.region().base());
  const uint64_t later = store.now_unix_us() + 1'000'000;
  for (const size_t value_len : {size_t{0}, size_t{5}, size_t{1000}, size_t{100'000}}) {
    const std::string value(value_len, 'v');
    for (const uint64_t expiry : {uint64_t{0}, later}) {
      for (const uint32_t user_flags : {0u, 1u, 0xffffffffu}) {
        const StoreResult put = store.Put("k", value, With(expiry, user_flags));
        REQUIRE(put.status == StoreStatus::kOk);
        CHECK(put.expiry_unix_us == expiry);
        const ItemView item = ItemOf(store, "k");
        CHECK(item.expiry_unix_us == expiry);
        CHECK(item.user_flags == user_flags);
        CHECK(item.value == value);
        CHECK(reader.Get("k") == value);
        KVD_REQUIRE_OK(store.CheckInvariants());
      }
    }
  }
}

TEST_CASE("Shard: an overwrite stays in place only if size and kinds of extras agree") {
  TestStore store;
  const uint64_t later = store.now_unix_us() + 1'000'000;
  const StoreResult plain = store.Put("k", "12345678abcdefgh12345678");
  const StoreResult expiring = store.Put("k", "12345678", With(later));  // as many bytes
  CHECK(ItemBytesOf(plain.slot) == ItemBytesOf(expiring.slot));
  CHECK(plain.slot != expiring.slot);
  const StoreResult again = store.Put("k", "abcdefgh", With(later + 1));
  CHECK(again.slot == expiring.slot);
  CHECK(again.version > expiring.version);
  CHECK(ItemOf(store, "k").expiry_unix_us == later + 1);
  const StoreResult flagged = store.Put("k", "12345678", With(0, 5));
  CHECK(flagged.slot != again.slot);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: an item whose time has come is absent, and gone for readers that ask nobody") {
  TestStore store;
  ReferenceReader reader(store.region().base());
  const uint64_t expiry = store.now_unix_us() + 1000;
  store.Put("k", "value", With(expiry));
  CHECK(store.shard().stats().expiring_items == 1);
  store.clock().AdvanceNs(999'999);
  store.RefreshClocks();
  CHECK(store.Get("k") == "value");
  store.clock().AdvanceNs(1);
  store.RefreshClocks();
  CHECK(reader.Get("k") == "value");  // this reader has no clock
  CHECK_FALSE(store.Get("k").has_value());
  CHECK_FALSE(reader.Get("k").has_value());
  CHECK(store.shard().stats().expiring_items == 0);
  CHECK(store.shard().stats().expired_items == 1);
  CHECK(store.shard().stats().items == 0);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: conditions see an item whose time has come as absent") {
  TestStore store;
  const auto expired = [&store] {
    const StoreResult put = store.Put("k", "value", With(store.now_unix_us() + 1));
    store.clock().AdvanceMs(1);
    store.RefreshClocks();
    return put.version;
  };
  uint64_t version = expired();
  CHECK(store.Put("k", "x", If(WriteCondition::kIfVersion, version)).status ==
        StoreStatus::kNotFound);
  expired();
  CHECK(store.Put("k", "x", If(WriteCondition::kIfPresent)).status == StoreStatus::kNotFound);
  version = expired();
  CHECK(store.Delete("k", If(WriteCondition::kIfVersion, version)).status ==
        StoreStatus::kNotFound);
  expired();
  CHECK(store.Delete("k").status == StoreStatus::kNotFound);
  expired();
  CHECK(store.Touch("k").status == StoreStatus::kNotFound);
  expired();
  const StoreResult put = store.Put("k", "new", If(WriteCondition::kIfAbsent));
  CHECK(put.status == StoreStatus::kOk);
  CHECK(put.version > version);
  CHECK(store.Get("k") == "new");
}

TEST_CASE("Shard: a write with an expiry in the past takes place and leaves no item") {
  TestStore store;
  Shard& shard = store.shard();
  const StoreOptions past = With(1);
  const StoreResult first = store.Put("k", "value");
  const StoreResult put = store.Put("k", "value", past);
  CHECK(put.status == StoreStatus::kOk);
  CHECK(put.version > first.version);
  CHECK(put.slot == kEmptySlot);
  CHECK_FALSE(store.Get("k").has_value());

  store.Put("k", "value");
  Reservation reservation;
  REQUIRE(shard.Reserve("k", store.Hash("k"), 4, reservation, past).status == StoreStatus::kOk);
  const StoreResult committed = shard.Commit(reservation);
  CHECK(committed.status == StoreStatus::kOk);
  CHECK(committed.slot == kEmptySlot);
  CHECK_FALSE(store.Get("k").has_value());

  store.Put("k", "1");
  const StoreResult sum = store.Increment("k", 1, past);
  CHECK(sum.status == StoreStatus::kOk);
  CHECK(sum.number == 2);
  CHECK_FALSE(store.Get("k").has_value());

  store.Put("k", "1");
  CHECK(store.Touch("k", past).status == StoreStatus::kOk);
  CHECK_FALSE(store.Get("k").has_value());
  CHECK(store.Put("new", "value", past).status == StoreStatus::kOk);
  CHECK(shard.stats().items == 0);
  CHECK(shard.stats().heap_used_bytes == 0);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

}  // namespace
}  // namespace kvd
