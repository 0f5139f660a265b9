// Increment, Extend and Touch.
#include <cstdint>
#include <string>

#include "tests/model/reference_reader.h"
#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using test::ReferenceReader;
using test::TestStore;

constexpr auto kBack = Shard::End::kBack;
constexpr auto kFront = Shard::End::kFront;

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

TEST_CASE("Shard: Increment counts from zero, up and down, and the value is plain decimal") {
  TestStore store;
  ReferenceReader reader(store.region().base());
  uint64_t last_version = 0;
  int64_t sum = 0;
  for (const int64_t delta : {int64_t{5}, int64_t{-6}, int64_t{0}, INT64_MAX, -INT64_MAX,
                              int64_t{1} << 40, -(int64_t{1} << 41)}) {
    sum += delta;
    const StoreResult result = store.Increment("n", delta);
    REQUIRE(result.status == StoreStatus::kOk);
    CHECK(result.number == sum);
    CHECK(result.version > last_version);
    last_version = result.version;
    CHECK(store.Get("n") == std::to_string(sum));
    CHECK(reader.Get("n") == std::to_string(sum));
  }
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: Increment of what is not a number in canonical decimal changes nothing") {
  TestStore store;
  for (const char* value :
       {"", "x", "+1", "-0", "01", "1 ", " 1", "1x", "-", "1.0", "0x1", "9223372036854775808",
        "-9223372036854775809", "99999999999999999999999999"}) {
    CAPTURE(value);
    const StoreResult put = store.Put("n", value);
    CHECK(store.Increment("n", 1).status == StoreStatus::kNotNumber);
    CHECK(ItemOf(store, "n").value == value);
    CHECK(ItemOf(store, "n").version == put.version);
  }
  store.Put("n", std::string("1\0", 2));
  CHECK(store.Increment("n", 1).status == StoreStatus::kNotNumber);
}

TEST_CASE("Shard: Increment beyond 64 bits is refused and changes nothing") {
  TestStore store;
  store.Put("n", std::to_string(INT64_MAX));
  CHECK(store.Increment("n", 1).status == StoreStatus::kOverflow);
  CHECK(store.Increment("n", INT64_MIN).number == -1);
  store.Put("n", std::to_string(INT64_MIN));
  CHECK(store.Increment("n", -1).status == StoreStatus::kOverflow);
  CHECK(store.Increment("n", INT64_MIN).status == StoreStatus::kOverflow);
  CHECK(store.Get("n") == std::to_string(INT64_MIN));
  CHECK(store.Increment("n", INT64_MAX).number == -1);
}

TEST_CASE(
    "Shard: Increment keeps its conditions, and the extras but for an expiry that it brings") {
  TestStore store;
  const uint64_t later = store.now_unix_us() + 1'000'000;
  CHECK(store.Increment("n", 1, If(WriteCondition::kIfPresent)).status == StoreStatus::kNotFound);
  CHECK(store.Increment("n", 1, If(WriteCondition::kIfVersion, 9)).status ==
        StoreStatus::kNotFound);
  CHECK(store.Increment("n", 1, If(WriteCondition::kIfAbsent)).number == 1);
  CHECK(store.Increment("n", 1, If(WriteCondition::kIfAbsent)).status ==
        StoreStatus::kConditionFailed);
  CHECK(store.Increment("n", 1, If(WriteCondition::kIfPresent)).number == 2);

  store.Put("n", "7", With(later, 3));
  const StoreResult kept = store.Increment("n", 1);
  CHECK(kept.expiry_unix_us == later);
  CHECK(ItemOf(store, "n").user_flags == 3);
  const StoreResult renewed = store.Increment("n", 1, With(later + 5));
  CHECK(renewed.expiry_unix_us == later + 5);
  CHECK(ItemOf(store, "n").expiry_unix_us == later + 5);
  CHECK(ItemOf(store, "n").user_flags == 3);
  CHECK(store.Increment("new", 1, With(later)).expiry_unix_us == later);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: Extend puts pieces behind and before, at all sizes, and an absent key is empty") {
  TestStore store({.memory_bytes = 32 * kMiB});
  ReferenceReader reader(store.region().base());
  std::string expected;
  for (const size_t length : {0, 1, 7, 8, 100, 300, 4000, 5000, 70'000}) {
    const std::string piece(length, static_cast<char>('a' + length % 26));
    expected = expected + piece;
    const StoreResult back = store.Extend("k", kBack, piece);
    REQUIRE(back.status == StoreStatus::kOk);
    CHECK(store.Get("k") == expected);
    expected = piece + expected;
    const StoreResult front = store.Extend("k", kFront, piece);
    REQUIRE(front.status == StoreStatus::kOk);
    CHECK(front.version > back.version);
    CHECK(reader.Get("k") == expected);
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
}

TEST_CASE("Shard: Extend keeps extras, conditions and the limit of a value") {
  TestStore store;
  const uint64_t later = store.now_unix_us() + 1'000'000;
  CHECK(store.Extend("k", kBack, "x", If(WriteCondition::kIfPresent)).status ==
        StoreStatus::kNotFound);
  const StoreResult put = store.Put("k", "12345", With(later, 3));
  CHECK(store.Extend("k", kBack, "x", If(WriteCondition::kIfVersion, put.version + 1)).version ==
        put.version);
  CHECK(store.Extend("k", kBack, "67", {}, 6).status == StoreStatus::kTooLarge);
  CHECK(store.Get("k") == "12345");
  CHECK(store.Extend("k", kBack, "6", {}, 6).status == StoreStatus::kOk);
  CHECK(store.Get("k") == "123456");
  CHECK(ItemOf(store, "k").expiry_unix_us == later);
  CHECK(ItemOf(store, "k").user_flags == 3);
  CHECK(store.Extend("k", kFront, "", With(later + 1)).expiry_unix_us == later + 1);
  CHECK(ItemOf(store, "k").user_flags == 3);
  CHECK(store.Extend("absent", kBack, "1234567", {}, 6).status == StoreStatus::kTooLarge);
  CHECK_FALSE(store.Get("absent").has_value());
}

TEST_CASE("Shard: Extend and Touch without room for the new item change nothing") {
  TestStore store({.memory_bytes = 4 * kMiB});
  const std::string value(1'600'000, 'v');
  REQUIRE(store.Put("k", value).status == StoreStatus::kOk);
  CHECK(store.Extend("k", kBack, "x", {}, 4 * kMiB).status == StoreStatus::kNoSpace);
  CHECK(store.Touch("k", With(store.now_unix_us() + 1'000'000)).status == StoreStatus::kNoSpace);
  CHECK(store.Get("k") == value);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: Touch sets, changes and removes the expiry and leaves everything else") {
  TestStore store;
  ReferenceReader reader(store.region().base());
  const uint64_t later = store.now_unix_us() + 1'000'000;
  CHECK(store.Touch("absent").status == StoreStatus::kNotFound);
  for (const size_t length : {size_t{10}, size_t{1000}, size_t{200'000}}) {
    const std::string value(length, 'v');
    StoreResult last = store.Put("k", value, With(0, 9));
    for (const uint64_t expiry : {later, later + 1, uint64_t{0}, uint64_t{0}, later}) {
      const StoreResult touched = store.Touch("k", With(expiry));
      REQUIRE(touched.status == StoreStatus::kOk);
      CHECK(touched.version > last.version);
      CHECK(touched.expiry_unix_us == expiry);
      // In place where nothing but the word changes.
      CHECK((touched.slot == last.slot) == ((last.expiry_unix_us == 0) == (expiry == 0)));
      const ItemView item = ItemOf(store, "k");
      CHECK(item.expiry_unix_us == expiry);
      CHECK(item.user_flags == 9);
      CHECK(item.version == touched.version);
      CHECK(reader.Get("k") == value);
      KVD_REQUIRE_OK(store.CheckInvariants());
      last = touched;
    }
    CHECK(store.Touch("k", If(WriteCondition::kIfVersion, 1)).status ==
          StoreStatus::kConditionFailed);
    CHECK(store.Touch("k", If(WriteCondition::kIfVersion, last.version)).status ==
          StoreStatus::kOk);
  }
}

TEST_CASE("Shard: Touch of a held item leaves the held bytes as they are") {
  TestStore store;
  const uint64_t later = store.now_unix_us() + 1'000'000;
  const StoreResult put = store.Put("k", std::string(10'000, 'v'), With(later));
  store.shard().Hold(put.slot);
  const StoreResult touched = store.Touch("k", With(later + 1));
  CHECK(touched.slot != put.slot);
  ItemView item;
  CHECK(JudgeItem(std::span<const std::byte>(store.region().At(LocationOf(put.slot)),
                                             ItemBytesOf(put.slot)),
                  {.incarnation = store.region().geometry().incarnation,
                   .location = LocationOf(put.slot),
                   .key = "k",
                   .held_version = put.version},
                  item) == ItemVerdict::kCurrent);
  store.shard().Release(put.slot);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

}  // namespace
}  // namespace kvd
