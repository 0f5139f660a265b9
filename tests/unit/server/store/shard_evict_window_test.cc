// Room for values that are longer than a segment of the index: found by a plan, or refused by it.
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/protocol/geometry.h"
#include "tests/model/reference_reader.h"
#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using test::kSanitizerFactor;
using test::ReferenceReader;
using test::TestStore;

std::string KeyOf(uint64_t i) { return "key" + std::to_string(i); }

// First values of 1,000 bytes, then very many small ones: the index grows into what the first had,
// so that its segments and the heap's pages lie between each other.
void FillInTurn(TestStore& store, uint64_t medium, uint64_t small) {
  uint64_t refused = 0;
  for (uint64_t i = 0; i < medium + small; ++i) {
    const std::string value(i < medium ? 1000 : 64, 'v');
    if (store.Put(KeyOf(i), value).status != StoreStatus::kOk) ++refused;
    if (i % 16 == 0) store.shard().Work();
  }
  REQUIRE(refused == 0);
}

TEST_CASE("Window: in memory in which index and heap lie between each other a quarter is found") {
  const uint64_t mib = kSanitizerFactor == 1 ? 64 : 16;
  TestStore store({.memory_bytes = mib * kMiB, .evict = true});
  Shard& shard = store.shard();
  FillInTurn(store, 100'000 * mib / 64, 840'000 * mib / 64);
  const std::string value(mib * kMiB / 4 - 4096, 'L');
  for (int i = 0; i < 6; ++i) {
    const ShardStats before = shard.stats();
    const std::string key = "large" + std::to_string(i);
    REQUIRE(store.Put(key, value).status == StoreStatus::kOk);
    const ShardStats after = shard.stats();
    CAPTURE(i, before.items, after.items, before.index_bytes, after.index_bytes);
    // About what it displaces; of items of 88 bytes in buckets that are not quite full, that is
    // less.
    CHECK(after.evicted_bytes - before.evicted_bytes <= value.size() * 3 / 2);
    CHECK(after.evicted_items - before.evicted_items <= value.size() / 64);
    CHECK(after.segments_moved - before.segments_moved <= value.size() / kSegmentBytes + 2);
    CHECK(before.index_bytes - after.index_bytes <= value.size() + 2 * kSegmentBytes);
    REQUIRE(store.Get(key) == value);
    // While there is so much else, the one before stays.
    if (i == 1) CHECK(store.Get("large0").has_value());
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
  CHECK(shard.stats().segments_moved > 0);
  CHECK(shard.stats().no_space == 0);
}

// Some of what is young lies in chains, and headers of these in the window.
TEST_CASE("Window: what was used just now stays, wherever its slot is") {
  TestStore store({.memory_bytes = 32 * kMiB, .evict = true});
  FillInTurn(store, 50'000, 420'000);
  const auto young = [](uint64_t i) { return "young" + std::to_string(i); };
  for (uint64_t i = 0; i < 60; ++i) {
    REQUIRE(store.Put(young(i), std::string(34'000, 'y')).status == StoreStatus::kOk);
  }
  for (int i = 0; i < 2; ++i) {
    REQUIRE(store.Put("large" + std::to_string(i), std::string(4 * kMiB, 'L')).status ==
            StoreStatus::kOk);
    uint64_t kept = 0;
    for (uint64_t y = 0; y < 60; ++y) kept += store.Get(young(y)).has_value() ? 1 : 0;
    CAPTURE(i);
    CHECK(kept == 60);
  }
}

TEST_CASE("Window: what is held stays, and the window lies beside it") {
  TestStore store({.memory_bytes = 16 * kMiB, .evict = true});
  FillInTurn(store, 25'000, 210'000);
  ReferenceReader reader(store.region().base());
  Random random(test::Seed());
  struct Held {
    Slot slot;
    uint64_t version;
    std::string value;
  };
  std::vector<Held> held;
  while (held.size() < 3) {
    const std::string key = KeyOf(random.Uniform(235'000));
    ItemView item;
    Slot slot;
    // The index ends with a segment that can go.
    const uint32_t buckets = store.shard().buckets();
    if (ToNumber(BucketOf(store.Hash(key), buckets)) > buckets / 2) continue;
    if (store.shard().Find(key, store.Hash(key), item, slot) != StoreStatus::kOk) continue;
    store.shard().Hold(slot);
    held.push_back({slot, item.version, std::string(item.value)});
  }
  uint64_t stored = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string key = "large" + std::to_string(i);
    const std::string value(2 * kMiB, static_cast<char>('a' + i));
    if (store.Put(key, value).status != StoreStatus::kOk) continue;
    ++stored;
    CHECK(reader.Get(key) == value);
  }
  CHECK(stored == 8);
  KVD_REQUIRE_OK(store.CheckInvariants());
  for (const auto& [slot, version, value] : held) {
    const std::span<const std::byte> bytes(store.region().At(LocationOf(slot)), ItemBytesOf(slot));
    ItemView item;
    REQUIRE(JudgeItem(bytes,
                      {.incarnation = store.region().geometry().incarnation,
                       .location = LocationOf(slot),
                       .key = {},
                       .held_version = version},
                      item) == ItemVerdict::kCurrent);
    CHECK(item.value == value);
    store.shard().Release(slot);
  }
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Window: where none can be cleared, nothing goes") {
  TestStore store({.memory_bytes = 16 * kMiB, .evict = true});
  Shard& shard = store.shard();
  FillInTurn(store, 25'000, 210'000);
  // One item in each MiB or so stays.
  std::vector<bool> has_one(16, false);
  std::vector<Slot> held;
  for (uint64_t i = 0; i < 235'000; ++i) {
    ItemView item;
    Slot slot;
    if (shard.Find(KeyOf(i), store.Hash(KeyOf(i)), item, slot) != StoreStatus::kOk) continue;
    const uint64_t mib = ToBytes(LocationOf(slot)) / kMiB;
    if (has_one[mib]) continue;
    has_one[mib] = true;
    shard.Hold(slot);
    held.push_back(slot);
  }
  REQUIRE(held.size() >= 14);
  const ShardStats before = shard.stats();
  const std::string value(4 * kMiB, 'L');
  for (int i = 0; i < 3; ++i) {
    CHECK(store.Put("large", value).status == StoreStatus::kNoSpace);
  }
  const ShardStats after = shard.stats();
  CHECK(after.no_space == before.no_space + 3);
  CHECK(after.evicted_items == before.evicted_items);
  CHECK(after.merges == before.merges);
  CHECK(after.segments_moved == before.segments_moved);
  KVD_REQUIRE_OK(store.CheckInvariants());
  for (const Slot slot : held) shard.Release(slot);
  CHECK(store.Put("large", value).status == StoreStatus::kOk);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

// A bucket with a chain takes it along, and items of the chain that lie in the bucket.
TEST_CASE("Window: readers that know the old places find everything at the new ones") {
  TestStore store({.memory_bytes = 16 * kMiB, .evict = true});
  FillInTurn(store, 25'000, 210'000);
  ReferenceReader reader(store.region().base());
  const uint64_t moved_before = store.shard().stats().segments_moved;
  for (int round = 0; round < 4; ++round) {
    std::vector<uint64_t> there;
    for (uint64_t i = 0; i < 235'000; i += 7) {
      if (reader.GetRemembered(KeyOf(i)).has_value()) there.push_back(i);
    }
    REQUIRE(store.Put("large" + std::to_string(round), std::string(3 * kMiB, 'L')).status ==
            StoreStatus::kOk);
    for (const uint64_t i : there) {
      const bool kept = store.shard().Peek(KeyOf(i), store.Hash(KeyOf(i)));
      const auto value = reader.GetRemembered(KeyOf(i));
      REQUIRE(value.has_value() == kept);
      if (!kept) continue;
      REQUIRE(*value == std::string(i < 25'000 ? 1000 : 64, 'v'));
      // And not what an old place still has once the item is written anew.
      if (i % 3 != 0) continue;
      REQUIRE(store.Put(KeyOf(i), std::string(i < 25'000 ? 1000 : 64, 'w')).status ==
              StoreStatus::kOk);
      REQUIRE(reader.GetRemembered(KeyOf(i)).value_or("").front() == 'w');
      REQUIRE(store.Put(KeyOf(i), std::string(i < 25'000 ? 1000 : 64, 'v')).status ==
              StoreStatus::kOk);
    }
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
  CHECK(store.shard().stats().segments_moved > moved_before);
}

}  // namespace
}  // namespace kvd
