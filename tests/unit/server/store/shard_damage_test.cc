// Items whose bytes have changed by themselves while the shard works on them: they stay damaged and
// are told to be, and nothing else comes to harm.
#include <cstring>
#include <string>
#include <vector>

#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using test::TestStore;

std::string KeyOf(uint64_t i) { return "key" + std::to_string(i); }

void Flip(TestStore& store, Slot slot, uint64_t byte, uint32_t bit) {
  std::byte* const at = store.region().At(LocationOf(slot)) + byte;
  *at ^= std::byte{1} << bit;
}

uint64_t FlushAll(TestStore& store) {
  uint64_t flushed = 0;
  uint32_t position = 0;
  do {
    const Shard::Flushed stretch = store.shard().Flush("", position);
    flushed += stretch.items;
    position = stretch.next_position;
  } while (position != 0);
  return flushed;
}

StoreStatus Find(TestStore& store, const std::string& key, Slot& slot) {
  ItemView item;
  return store.shard().Find(key, store.Hash(key), item, slot);
}

TEST_CASE("Damage: a flipped bit in a length or a flag spoils no count by more than the item") {
  for (const size_t value_bytes : {10, 400, 600, 3000}) {
    for (const bool replace : {false, true}) {
      TestStore store;
      store.Put("other", "value");
      const uint64_t before = store.shard().stats().user_bytes;
      for (uint64_t byte = 8; byte < kLongItemHeaderBytes; ++byte) {
        for (uint32_t bit = 0; bit < 8; ++bit) {
          const StoreResult put = store.Put("key", std::string(value_bytes, 'v'));
          REQUIRE(put.status == StoreStatus::kOk);
          Flip(store, put.slot, byte, bit);
          if (replace) store.Put("key", std::string(value_bytes, 'w'));
          FlushAll(store);
          store.Put("other", "value");
          const ShardStats after = store.shard().stats();
          CAPTURE(value_bytes, replace, byte, bit);
          CHECK(after.items == 1);
          CHECK(after.expiring_items == 0);
          // What a count may be wrong by does not add up to more than that.
          CHECK(after.user_bytes <= before + 16 * 8 * 32);
        }
      }
    }
  }
}

// The last one of the region has nothing behind it: its length may say what it will.
TEST_CASE("Damage: no length leads beyond the region") {
  TestStore store({.memory_bytes = 4 * kMiB});
  std::vector<Slot> slots;
  for (uint64_t i = 0;; ++i) {
    const StoreResult put = store.Put(KeyOf(i), std::string(600, 'v'));
    if (put.status != StoreStatus::kOk) break;
    slots.push_back(put.slot);
  }
  for (const Slot slot : slots) {
    const uint16_t longest = UINT16_MAX;
    std::memcpy(store.region().At(LocationOf(slot)) + kItemHeaderBytes, &longest, sizeof(longest));
  }
  Slot slot;
  for (uint64_t i = 0; i < slots.size(); ++i) {
    REQUIRE(Find(store, KeyOf(i), slot) == StoreStatus::kDamaged);
  }
  store.shard().Flush("no such prefix", 0);
  CHECK(FlushAll(store) == slots.size());
  CHECK(store.shard().stats().items == 0);
}

TEST_CASE("Damage: a key that is damaged is told to be, however often its bucket is split") {
  TestStore store({.memory_bytes = 32 * kMiB});
  std::vector<std::string> damaged;
  for (uint64_t i = 0; i < 4000; ++i) {
    const StoreResult put = store.Put(KeyOf(i), std::string(64, 'v'));
    if (i % 40 != 0) continue;
    // In the key, or in its length.
    if (i % 80 == 0) Flip(store, put.slot, kItemHeaderBytes + 2, i % 8);
    if (i % 80 != 0) Flip(store, put.slot, offsetof(ItemHeader, check_and_lengths), i / 80 % 7);
    damaged.push_back(KeyOf(i));
  }
  const uint32_t buckets = store.shard().buckets();
  uint64_t i = 4000;
  for (; store.shard().buckets() < 6 * buckets; ++i) {
    REQUIRE(store.Put(KeyOf(i), std::string(64, 'v')).status == StoreStatus::kOk);
  }
  Slot slot;
  for (const std::string& key : damaged) CHECK(Find(store, key, slot) == StoreStatus::kDamaged);
  uint64_t lost = 0;
  for (uint64_t k = 0; k < i; ++k) {
    if (Find(store, KeyOf(k), slot) != StoreStatus::kOk) ++lost;
  }
  CHECK(lost == damaged.size());
  // Written anew, and merged again.
  for (const std::string& key : damaged) {
    REQUIRE(store.Put(key, "new").status == StoreStatus::kOk);
    CHECK(store.Get(key) == "new");
  }
  for (uint64_t k = 4000; k < i; ++k) store.Delete(KeyOf(k));
  while (store.shard().Work()) continue;
  CHECK(store.shard().stats().merges > 0);
  for (const std::string& key : damaged) CHECK(store.Get(key) == "new");
}

TEST_CASE("Damage: items that are lent room go home and make way although they are damaged") {
  TestStore store({.memory_bytes = 16 * kMiB});
  uint64_t items = 0;
  while (store.Put(KeyOf(items), std::string(64, 's')).status == StoreStatus::kOk) {
    ++items;
    store.shard().Work();
  }
  REQUIRE(store.shard().stats().borrowed_places > 100);
  Slot slot;
  for (uint64_t i = 0; i < items; i += 8) {
    REQUIRE(Find(store, KeyOf(i), slot) == StoreStatus::kOk);
    Flip(store, slot, kItemHeaderBytes + KeyOf(i).size() + 5, 3);
  }
  for (uint64_t i = 0; i < items; ++i) {
    if (i % 8 != 0) REQUIRE(store.Delete(KeyOf(i)).status == StoreStatus::kOk);
  }
  while (store.shard().Work()) continue;
  CHECK(store.shard().stats().merges > 0);
  CHECK(store.shard().stats().borrowed_places == 0);
  for (uint64_t i = 0; i < items; i += 8) {
    REQUIRE(Find(store, KeyOf(i), slot) == StoreStatus::kDamaged);
  }
}

}  // namespace
}  // namespace kvd
