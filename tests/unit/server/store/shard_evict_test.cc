// Eviction: what goes, what stays, and that writes find room.
#include <cstring>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/model/lru_trace.h"
#include "tests/model/reference_reader.h"
#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using test::ReferenceReader;
using test::TestStore;

TestStore::Options Small() { return {.memory_bytes = 4 * kMiB, .evict = true}; }

std::string KeyOf(uint64_t i) { return "key" + std::to_string(i); }

TEST_CASE("Shard: with eviction a full region takes writes of every size, one after the other") {
  TestStore store({.memory_bytes = 16 * kMiB, .evict = true});
  ReferenceReader reader(store.region().base());
  uint64_t next = 0;
  for (const size_t value_len : {900'000, 3000, 200'000, 1000, 50, 10, 3000, 40'000, 300, 100}) {
    for (uint64_t bytes = 0; bytes < 24 * kMiB; bytes += value_len + 100) {
      const std::string key = KeyOf(next++);
      const std::string value(value_len, static_cast<char>('a' + next % 26));
      if (store.Put(key, value).status != StoreStatus::kOk) FAIL("no room for " << value_len);
      if (next % 64 == 0) {
        REQUIRE(store.Get(key) == value);
        REQUIRE(reader.Get(key) == value);
      }
      store.shard().Work();
    }
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
  CHECK(store.shard().stats().evicted_items > 0);
  CHECK(store.shard().stats().evicted_bytes > 0);
  CHECK(store.shard().stats().no_space == 0);
}

TEST_CASE("Shard: without eviction nothing goes") {
  TestStore store({.memory_bytes = 4 * kMiB});
  uint64_t stored = 0;
  while (store.Put(KeyOf(stored), std::string(1000, 'v')).status == StoreStatus::kOk) ++stored;
  CHECK(store.shard().stats().items == stored);
  CHECK(store.shard().stats().evicted_items == 0);
  store.shard().NoteHit(store.Hash(KeyOf(0)));
}

TEST_CASE("Shard: what is used stays, by requests and by hits that clients tell of") {
  for (const bool by_hits : {false, true}) {
    TestStore store(Small());
    for (int round = 0; round < 400; ++round) {
      for (int i = 0; i < 100; ++i) store.Put(KeyOf(1000 + round * 100 + i), std::string(500, 'v'));
      for (uint64_t hot = 0; hot < 20; ++hot) {
        if (round == 0) {
          store.Put(KeyOf(hot), std::string(500, 'h'));
        } else if (by_hits) {
          store.shard().NoteHit(store.Hash(KeyOf(hot)));
        } else {
          store.Get(KeyOf(hot));
        }
      }
    }
    CHECK(store.shard().stats().evicted_items > 10'000);
    uint64_t kept = 0;
    for (uint64_t hot = 0; hot < 20; ++hot) kept += store.Get(KeyOf(hot)).has_value() ? 1 : 0;
    CHECK(kept == 20);
  }
}

TEST_CASE("Shard: held and reserved items are not evicted, nor the one that is written") {
  TestStore store(Small());
  Shard& shard = store.shard();
  const StoreResult held = store.Put("held", std::string(10'000, 'h'));
  shard.Hold(held.slot);
  Reservation reservation;
  REQUIRE(shard.Reserve("reserved", store.Hash("reserved"), 10'000, reservation).status ==
          StoreStatus::kOk);
  std::memset(reservation.value, 'r', 10'000);
  std::string grown;
  for (int i = 0; i < 10'000; ++i) {
    store.Put(KeyOf(static_cast<uint64_t>(i)), std::string(3000, 'v'));
    if (i % 100 != 0) continue;
    REQUIRE(store.Extend("grown", Shard::End::kBack, std::string(1000, 'g')).status ==
            StoreStatus::kOk);
    grown = store.Get("grown").value();
  }
  CHECK(grown.size() % 1000 == 0);
  CHECK(shard.stats().evicted_items > 1000);
  ItemView item;
  const std::span<const std::byte> bytes(store.region().At(LocationOf(held.slot)),
                                         ItemBytesOf(held.slot));
  CHECK(JudgeItem(bytes,
                  {.incarnation = store.region().geometry().incarnation,
                   .location = LocationOf(held.slot),
                   .key = "held",
                   .held_version = held.version},
                  item) == ItemVerdict::kCurrent);
  CHECK(shard.Commit(reservation).status == StoreStatus::kOk);
  CHECK(store.Get("reserved") == std::string(10'000, 'r'));
  shard.Release(held.slot);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Shard: more than half of the region is not made room for") {
  TestStore store(Small());
  store.Put("k", "value");
  CHECK(store.Put("large", std::string(3 * kMiB, 'v')).status == StoreStatus::kNoSpace);
  CHECK(store.Get("k").has_value());
}

TEST_CASE("Shard: versions grow across eviction and insertion") {
  TestStore store(Small());
  const StoreResult first = store.Put("k", std::string(1000, 'a'));
  for (uint64_t i = 0; store.Get("k").has_value(); ++i) {
    store.Put(KeyOf(i), std::string(1000, 'v'));
    // Get uses it, so that it goes last.
    if (i % 1000 == 999) {
      for (uint64_t j = 0; j < 8000; ++j) store.Put(KeyOf(i + j), std::string(1000, 'v'));
    }
    REQUIRE(i < 100'000);
  }
  CHECK(store.Put("k", "b").version > first.version);
}

TEST_CASE("Eviction: within 3 points of an exact LRU of the same size on Zipf traces") {
  struct Case {
    uint64_t keys, value_bytes_min, value_bytes_max;
  };
  for (const Case& c : {Case{150'000, 64, 64}, Case{40'000, 1000, 1000}, Case{40'000, 10, 2000}}) {
    test::TraceOptions options;
    options.seed = 42;
    options.keys = c.keys;
    options.value_bytes_min = c.value_bytes_min;
    options.value_bytes_max = c.value_bytes_max;
    const bool slow = test::kSanitizerFactor != 1;
    options.requests = slow ? 250'000 : 1'000'000;
    options.memory_bytes = (slow ? 4 : 8) * kMiB;
    options.told_one_in = 8;
    const test::TraceResult result = test::RunTrace(options);
    CAPTURE(c.value_bytes_max, result.items, result.evicted_items, result.hit_ratio,
            result.exact_hit_ratio);
    CHECK(result.evicted_items > 0);
    CHECK(result.hit_ratio >= result.exact_hit_ratio - 0.03);
  }
}

}  // namespace
}  // namespace kvd
