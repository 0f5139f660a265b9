#include "server/store/shard.h"

#include <algorithm>
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

Slot SlotOfKey(TestStore& store, std::string_view key) {
  ItemView item;
  Slot slot = kEmptySlot;
  REQUIRE(store.ShardOfKey(key).Find(key, store.Hash(key), item, slot) == StoreStatus::kOk);
  return slot;
}

// How a reader judges the bytes at a location that it kept from earlier.
ItemVerdict JudgeAt(TestStore& store, Slot slot, std::string_view key, uint64_t held_version = 0) {
  const std::span<const std::byte> bytes(store.region().At(LocationOf(slot)), ItemBytesOf(slot));
  ItemView item;
  return JudgeItem(bytes,
                   {.incarnation = store.region().geometry().incarnation,
                    .location = LocationOf(slot),
                    .key = key,
                    .held_version = held_version},
                   item);
}

TEST_CASE("Shard: items at all limits are kept and read from the region's bytes") {
  TestStore store({.memory_bytes = 48 * kMiB});
  ReferenceReader reader(store.region().base());
  std::map<std::string, std::string> items;
  for (const size_t key_len :
       {size_t{1}, size_t{8}, size_t{127}, size_t{128}, size_t{255}, size_t{kKeyBytesMax}}) {
    for (const size_t value_len :
         {0, 1, 8, 63, 64, 263, 264, 265, 511, 512, 2015, 2016, 4096, 32'000, 40'000, 1'048'576}) {
      std::string key(key_len, static_cast<char>('a' + items.size()));
      items[key] = std::string(value_len, static_cast<char>(items.size()));
      REQUIRE(store.Put(key, items[key]).status == StoreStatus::kOk);
    }
  }
  KVD_REQUIRE_OK(store.CheckInvariants());
  for (const auto& [key, value] : items) {
    REQUIRE(store.Get(key) == value);
    REQUIRE(reader.Get(key) == value);
  }
  REQUIRE_FALSE(store.Get("absent").has_value());
  REQUIRE_FALSE(reader.Get("absent").has_value());
  REQUIRE(store.shard().stats().items == items.size());
}

TEST_CASE("Shard: a small item lies in its bucket, a larger one in the heap") {
  TestStore store;
  store.Put("small", std::string(64, 'x'));
  REQUIRE(store.shard().stats().local_items == 1);
  REQUIRE(store.shard().stats().heap_used_bytes == 0);
  store.Put("large", std::string(500, 'x'));
  REQUIRE(store.shard().stats().local_items == 1);
  REQUIRE(store.shard().stats().heap_used_bytes == 16 + 5 + 500 + 7);
}

TEST_CASE(
    "Shard: an overwrite of the same size stays in place, another one moves and leaves the old "
    "item dead") {
  TestStore store;
  const StoreResult first = store.Put("key", "aaaa");
  const StoreResult second = store.Put("key", "bbbb");
  REQUIRE(second.slot == first.slot);
  REQUIRE(second.version > first.version);
  REQUIRE(store.shard().stats().overwrites_in_place == 1);
  const StoreResult third = store.Put("key", std::string(100, 'c'));
  REQUIRE(third.slot != second.slot);
  REQUIRE(store.shard().stats().overwrites_moved == 1);
  REQUIRE(JudgeAt(store, second.slot, "key") == ItemVerdict::kDead);
  REQUIRE(JudgeAt(store, third.slot, "key") == ItemVerdict::kCurrent);
  REQUIRE(store.Get("key") == std::string(100, 'c'));
}

TEST_CASE("Shard: items over 4 KiB are always replaced out of place") {
  TestStore store;
  const StoreResult first = store.Put("key", std::string(5000, 'a'));
  const StoreResult second = store.Put("key", std::string(5000, 'b'));
  REQUIRE(second.slot != first.slot);
  REQUIRE(JudgeAt(store, first.slot, "key") == ItemVerdict::kDead);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: a deleted item is dead where it lay, and its memory is free") {
  TestStore store;
  const StoreResult put = store.Put("key", std::string(1000, 'x'));
  REQUIRE(store.Delete("key").status == StoreStatus::kOk);
  REQUIRE(JudgeAt(store, put.slot, "key") == ItemVerdict::kDead);
  REQUIRE(store.Delete("key").status == StoreStatus::kNotFound);
  REQUIRE(store.shard().stats().heap_used_bytes == 0);
  REQUIRE(store.shard().stats().user_bytes == 0);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE(
    "Shard: versions grow per key across delete and re-insertion and when the clock jumps back") {
  TestStore store;
  uint64_t last = 0;
  const auto grow = [&](const StoreResult& result) {
    REQUIRE(result.status == StoreStatus::kOk);
    REQUIRE(result.version > last);
    last = result.version;
  };
  store.clock().SetUnixUs(2'000'000'000'000'000);
  store.shard().RefreshClock();
  grow(store.Put("key", "1"));
  REQUIRE(last == uint64_t{2'000'000'000'000'000} << 10);
  grow(store.Put("key", "2"));
  grow(store.Delete("key"));
  store.clock().SetUnixUs(1'000'000'000'000'000);
  store.shard().RefreshClock();
  grow(store.Put("key", "3"));
  store.clock().SetUnixUs(-5);
  store.shard().RefreshClock();
  grow(store.Put("key", std::string(300, '4')));
  store.clock().SetUnixUs(INT64_MAX);
  store.shard().RefreshClock();
  grow(store.Put("key", "5"));
  REQUIRE(last <= kVersionMax);
  store.clock().SetUnixUs(2'000'000'000'000'001);
  store.shard().RefreshClock();
  grow(store.Put("key", "6"));
}

TEST_CASE("Shard: an item that came to lie in the heap goes home when its bucket has room again") {
  TestStore store;
  // Keys of one bucket: fill its local space and one more.
  std::vector<std::string> keys;
  const BucketIndex bucket = BucketOf(store.Hash("key0"), 1024);
  for (int i = 0; keys.size() < 4; ++i) {
    const std::string key = "key" + std::to_string(i);
    if (BucketOf(store.Hash(key), 1024) == bucket) keys.push_back(key);
  }
  for (const std::string& key : keys) store.Put(key, std::string(240, 'x'));
  REQUIRE(store.shard().stats().local_items == 3);
  const ReadCost spilled = store.shard().MeasureReads();
  REQUIRE(spilled.reads == 5);
  REQUIRE(store.Delete(keys[0]).status == StoreStatus::kOk);
  REQUIRE(store.shard().stats().local_items == 3);
  REQUIRE(store.shard().stats().heap_used_bytes == 0);
  REQUIRE(store.shard().MeasureReads().reads == 3);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

// Every item's value by its key, as the store itself finds it.
std::map<std::string, std::string> Snapshot(TestStore& store,
                                            const std::vector<std::string>& keys) {
  std::map<std::string, std::string> snapshot;
  for (const std::string& key : keys) {
    if (auto value = store.Get(key)) snapshot[key] = *std::move(value);
  }
  return snapshot;
}

TEST_CASE("Shard: a full region refuses and changes nothing; deletes make room again") {
  for (const size_t value_len : {64u, 3000u, 100'000u}) {
    TestStore store({.memory_bytes = 4 * kMiB});
    std::vector<std::string> keys;
    while (true) {
      keys.push_back("key" + std::to_string(keys.size()));
      if (store.Put(keys.back(), std::string(value_len, 'x')).status == StoreStatus::kNoSpace)
        break;
    }
    INFO(keys.size() << " values of " << value_len);
    KVD_REQUIRE_OK(store.CheckInvariants());
    const auto before = Snapshot(store, keys);
    REQUIRE(before.size() == keys.size() - 1);
    REQUIRE(store.Put(keys.back(), std::string(value_len, 'y')).status == StoreStatus::kNoSpace);
    REQUIRE(store.Put(keys.front(), std::string(2'000'000, 'y')).status == StoreStatus::kNoSpace);
    REQUIRE(store.Put("another", std::string(5 * kMiB, 'y')).status == StoreStatus::kNoSpace);
    Reservation reservation;
    REQUIRE(store.shard().Reserve("more", store.Hash("more"), 2'000'000, reservation).status ==
            StoreStatus::kNoSpace);
    REQUIRE(store.shard().Reserve("more", store.Hash("more"), UINT64_MAX, reservation).status ==
            StoreStatus::kNoSpace);
    REQUIRE(store.shard().stats().no_space >= 6);
    REQUIRE(Snapshot(store, keys) == before);
    KVD_REQUIRE_OK(store.CheckInvariants());

    for (size_t i = 0; i + 1 < keys.size(); i += 2)
      REQUIRE(store.Delete(keys[i]).status == StoreStatus::kOk);
    // But for the last few, which found what buckets had left before.
    size_t refused = 0;
    for (size_t i = 0; i + 1 < keys.size(); i += 2)
      refused += store.Put(keys[i], std::string(value_len, 'z')).status != StoreStatus::kOk;
    CHECK(refused <= (value_len == 64 ? keys.size() / 100 : 0));
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
}

TEST_CASE("Shard: when no segment is left, growth stops, chains grow and nothing fails") {
  TestStore store({.memory_bytes = 4 * kMiB});
  std::vector<RegionOffset> segments;
  while (const auto segment = store.region().AllocateIndexSegment()) segments.push_back(*segment);
  std::vector<std::string> keys;
  for (int i = 0; i < 16'000; ++i) {
    keys.push_back("key" + std::to_string(i));
    if (store.Put(keys.back(), "").status != StoreStatus::kOk) break;
    if (i % 1000 == 0) store.shard().Work();
  }
  REQUIRE(keys.size() > 14'000);
  REQUIRE(store.shard().stats().splits == 0);
  REQUIRE(store.shard().stats().overflow_headers > 300);
  ReferenceReader reader(store.region().base());
  for (size_t i = 0; i + 1 < keys.size(); ++i) REQUIRE(reader.Get(keys[i]) == "");

  // With room again it catches up.
  for (const RegionOffset segment : segments) store.region().FreePages(segment, kSegmentBytes);
  for (int i = 0; i < 200; ++i) store.shard().Work();
  while (store.shard().Work()) {
  }
  REQUIRE(store.shard().stats().splits > 500);
  KVD_REQUIRE_OK(store.CheckInvariants());
  for (size_t i = 0; i + 1 < keys.size(); ++i) REQUIRE(reader.Get(keys[i]) == "");
}

TEST_CASE("Shard: no room even for the first segment") {
  auto region =
      Region::Create({.memory_bytes = 4 * kMiB, .hugepages = HugepagePolicy::kOff, .progress = {}});
  KVD_REQUIRE_OK(region);
  while ((*region)->AllocateIndexSegment()) {
  }
  test::FakeClock clock;
  KVD_REQUIRE_CODE(Shard::Create(**region, 0, clock), kResourceExhausted);
}

TEST_CASE(
    "Shard: a reservation is seen by nobody before its commit, and other writes may come between") {
  TestStore store;
  ReferenceReader reader(store.region().base());
  Shard& shard = store.shard();
  const uint64_t hash = store.Hash("key");
  const auto reserve = [&](std::string_view value) {
    Reservation reservation;
    REQUIRE(shard.Reserve("key", hash, value.size(), reservation).status == StoreStatus::kOk);
    if (!value.empty()) std::memcpy(reservation.value, value.data(), value.size());
    return reservation;
  };
  const Reservation first = reserve("first");
  const Reservation second = reserve(std::string(10'000, 's'));
  const Reservation third = reserve("");
  REQUIRE_FALSE(store.Get("key").has_value());
  const StoreResult put = store.Put("key", "between");
  REQUIRE(reader.Get("key") == "between");
  KVD_REQUIRE_OK(store.CheckInvariants());

  const StoreResult committed = shard.Commit(second);
  REQUIRE(committed.version > put.version);
  REQUIRE(reader.Get("key") == std::string(10'000, 's'));
  REQUIRE(store.Delete("key").status == StoreStatus::kOk);
  const StoreResult again = shard.Commit(first);
  REQUIRE(again.version > committed.version);
  REQUIRE(SlotOfKey(store, "key") == again.slot);
  REQUIRE(reader.Get("key") == "first");
  shard.Abort(third);
  REQUIRE(reader.Get("key") == "first");
  KVD_REQUIRE_OK(store.CheckInvariants());
  store.Delete("key");
  REQUIRE(shard.stats().heap_used_bytes == 0);
}

TEST_CASE(
    "Shard: a commit that finds no room for its slot gives its memory back and changes nothing") {
  TestStore store({.memory_bytes = 4 * kMiB});
  Shard& shard = store.shard();
  while (store.region().AllocateIndexSegment()) {  // no growth: buckets fill up to their last slot
  }
  // Memory for reservations, while no bucket has any left to lend.
  std::vector<RegionOffset> aside;
  while (aside.size() < 64) aside.push_back(*store.region().AllocatePages(kPageBytes));
  int number = 0;
  const std::string value(64, 'v');
  for (int refused = 0; refused < 1000;) {
    const std::string key = "key" + std::to_string(number++);
    refused += store.Put(key, value).status == StoreStatus::kOk ? 0 : 1;
  }
  for (const RegionOffset pages : aside) store.region().FreePages(pages, kPageBytes);
  Reservation reservation;
  while (true) {
    const std::string key = "key" + std::to_string(number++);
    REQUIRE(shard.Reserve(key, store.Hash(key), 0, reservation).status == StoreStatus::kOk);
    std::vector<RegionOffset> rest;  // whatever else the heap could take
    while (const auto pages = store.region().AllocatePages(kPageBytes)) rest.push_back(*pages);
    const uint64_t used = shard.stats().heap_used_bytes;
    const uint64_t items = shard.stats().items;
    const StoreResult result = shard.Commit(reservation);
    for (const RegionOffset pages : rest) store.region().FreePages(pages, kPageBytes);
    if (result.status == StoreStatus::kOk) continue;
    REQUIRE(result.status == StoreStatus::kNoSpace);
    REQUIRE(shard.stats().items == items);
    REQUIRE(shard.stats().heap_used_bytes < used);
    REQUIRE_FALSE(store.Get(key).has_value());
    break;
  }
  REQUIRE(number > 1000);
}

TEST_CASE(
    "Shard: a held item stays readable with its version through overwrite, delete and reuse "
    "pressure") {
  for (const size_t value_len : {40u, 2000u, 100'000u}) {
    INFO("value of " << value_len);
    TestStore store({.memory_bytes = 4 * kMiB});
    Shard& shard = store.shard();
    const StoreResult put = store.Put("key", std::string(value_len, 'h'));
    shard.Hold(put.slot);
    shard.Hold(put.slot);
    REQUIRE(store.Put("key", std::string(value_len, 'n')).slot != put.slot);  // not in place
    REQUIRE(store.Delete("key").status == StoreStatus::kOk);
    for (size_t i = 0; i < 40'000'000 / (value_len + 2000); ++i) {
      store.Put("k" + std::to_string(i), std::string(value_len, 'x'));
    }
    REQUIRE(JudgeAt(store, put.slot, "key") == ItemVerdict::kDead);
    REQUIRE(JudgeAt(store, put.slot, "key", put.version) == ItemVerdict::kCurrent);
    KVD_REQUIRE_OK(store.CheckInvariants());
    shard.Release(put.slot);
    REQUIRE(JudgeAt(store, put.slot, "key", put.version) == ItemVerdict::kCurrent);
    const uint64_t before = shard.stats().heap_used_bytes;
    shard.Release(put.slot);
    KVD_REQUIRE_OK(store.CheckInvariants());
    if (value_len > 300) REQUIRE(shard.stats().heap_used_bytes < before);
    shard.Release(put.slot);  // of what is not held: nothing
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
}

TEST_CASE("Shard: the buckets of a full doubling are all split, and misses stay misses") {
  TestStore store({.memory_bytes = 16 * kMiB});
  ReferenceReader reader(store.region().base());
  int number = 0;
  while (store.shard().stats().buckets < 4096) {
    store.Put("key" + std::to_string(number++), "some value of some length");
    if (number % 5000 == 0) KVD_REQUIRE_OK(store.CheckInvariants());
  }
  KVD_REQUIRE_OK(store.CheckInvariants());
  for (int i = 0; i < number; ++i) {
    if (!reader.Get("key" + std::to_string(i))) FAIL("key " << i << " is lost");
    if (reader.Get("no" + std::to_string(i))) FAIL("a key that nobody put is found: " << i);
  }
}

TEST_CASE("Shard: a reader with an old bucket count finds every key") {
  TestStore store({.memory_bytes = 16 * kMiB});
  std::vector<uint64_t> counts{store.region().superblock().bucket_counts[0]};
  int number = 0;
  while (store.shard().stats().buckets < 5000) {
    store.Put("key" + std::to_string(number++), "some value of some length");
    if (number % (4001 * static_cast<int>(test::kSanitizerFactor)) == 0)
      counts.push_back(store.region().superblock().bucket_counts[0]);
  }
  ReferenceReader reader(store.region().base());
  const uint64_t newest = store.region().superblock().bucket_counts[0];
  for (const uint64_t old : counts) {
    store.region().superblock().bucket_counts[0] = old;
    for (int i = 0; i < number; ++i) {
      if (!reader.Get("key" + std::to_string(i))) FAIL("key " << i << " is lost");
      if (reader.Get("no" + std::to_string(i))) FAIL("a key that nobody put is found: " << i);
    }
  }
  REQUIRE(reader.retries() == 0);
  store.region().superblock().bucket_counts[0] = newest;
}

TEST_CASE("Shard: grows from one segment to a million keys, all found, at its stated costs") {
  constexpr uint64_t kKeys = 1'000'000 / test::kSanitizerFactor;
  TestStore store({.memory_bytes = 256 * kMiB});
  REQUIRE(store.shard().stats().index_bytes == kSegmentBytes);
  const auto key_of = [](uint64_t number) {
    const uint64_t mixed = Mix64(number);
    return std::string(reinterpret_cast<const char*>(&mixed), sizeof(mixed));
  };
  std::string value(64, '\0');
  double worst_reads = 0;
  double worst_misses = 0;
  for (uint64_t i = 0; i < kKeys; ++i) {
    std::memcpy(value.data(), &i, sizeof(i));
    if (store.Put(key_of(i), value).status != StoreStatus::kOk) FAIL("key " << i << " is refused");
    while (i % 32 == 0 && store.shard().Work()) {
    }
    if (i % (kKeys / 10) == kKeys / 10 - 1) {
      const ReadCost cost = store.shard().MeasureReads();
      worst_reads =
          std::max(worst_reads, static_cast<double>(cost.reads) / static_cast<double>(cost.items));
      worst_misses = std::max(worst_misses, cost.reads_per_miss);
    }
  }
  KVD_REQUIRE_OK(store.CheckInvariants());
  ReferenceReader reader(store.region().base());
  for (uint64_t i = 0; i < kKeys; ++i) {
    std::memcpy(value.data(), &i, sizeof(i));
    if (reader.Get(key_of(i)) != value) FAIL("key " << i << " is lost");
  }
  const ShardStats stats = store.shard().stats();
  REQUIRE(stats.items == kKeys);
  REQUIRE(stats.user_bytes == kKeys * 72);
  REQUIRE(worst_reads < 1.15);
  REQUIRE(worst_misses < 1.02);
  REQUIRE(worst_misses > 1);
  const uint64_t used = stats.index_bytes + stats.heap_bytes;
  // Few keys fill their last segment badly.
  REQUIRE(stats.user_bytes * 100 > used * (kKeys < 1'000'000 ? 45 : 53));
}

TEST_CASE("Shard: writes split by themselves when nobody calls Work") {
  TestStore store;
  for (int i = 0; i < 30'000; ++i)
    store.Put("key" + std::to_string(i), "some value of some length");
  const ShardStats stats = store.shard().stats();
  REQUIRE(stats.buckets * 10 > stats.items);
  REQUIRE(store.shard().MeasureReads().items == stats.items);
}

TEST_CASE("Shard: churn of 64 bytes and 4 MiB leaves most of the region usable for 4 MiB") {
  Random random(test::Seed());
  constexpr uint64_t kLarge = 4 * kMiB;
  TestStore store({.memory_bytes = 128 * kMiB});
  const auto small_key = [](uint64_t number) { return "small" + std::to_string(number); };
  const auto large_key = [](uint64_t number) { return "large" + std::to_string(number); };
  const std::string large(kLarge, 'L');
  for (int step = 0; step < static_cast<int>(60'000 / test::kSanitizerFactor); ++step) {
    if (random.OneIn(200)) {
      const std::string key = large_key(random.Uniform(40));
      if (random.OneIn(3)) {
        store.Delete(key);
      } else {
        store.Put(key, large);
      }
    } else {
      const std::string key = small_key(random.Uniform(50'000));
      if (random.OneIn(4)) {
        store.Delete(key);
      } else {
        store.Put(key, std::string(random.Between(60, 68), 's'));
      }
    }
    if (step % 10'000 == 0) KVD_REQUIRE_OK(store.CheckInvariants());
  }
  for (uint64_t i = 0; i < 40; ++i) store.Delete(large_key(i));
  KVD_REQUIRE_OK(store.CheckInvariants());
  const uint64_t free = store.region().free_bytes();
  uint64_t usable = 0;
  while (store.Put(large_key(usable), large).status == StoreStatus::kOk) usable += kLarge;
  INFO("usable for 4 MiB: " << usable << " of " << free << " free");
  REQUIRE(usable * 4 >= free * 3);
}

}  // namespace
}  // namespace kvd
