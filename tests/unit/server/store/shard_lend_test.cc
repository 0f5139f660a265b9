// A store whose heap is full goes on in what other buckets have left of their local space.
#include <map>
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

void WorkAll(TestStore& store) {
  while (store.shard().Work()) continue;
}

double UserShare(TestStore& store) {
  return static_cast<double>(store.shard().stats().user_bytes) /
         static_cast<double>(store.region().bytes());
}

// Puts items of so many bytes until one is refused, but those that `skip` says. How many it tried.
template <typename Skip>
uint64_t Fill(TestStore& store, uint64_t value_bytes, Skip skip) {
  for (uint64_t i = 0;; ++i) {
    const std::string key = KeyOf(i);
    if (skip(key)) continue;
    if (store.Put(key, std::string(value_bytes, 's')).status != StoreStatus::kOk) return i;
    store.shard().Work();
  }
}
uint64_t Fill(TestStore& store, uint64_t value_bytes) {
  return Fill(store, value_bytes, [](const std::string&) { return false; });
}

TEST_CASE("Lending: a full store holds a sixth more, and readers find all of it") {
  struct Case {
    uint64_t value_bytes;
    double user_share;  // without lending: 0.29, 0.50, 0.56
  };
  for (const auto [value_bytes, user_share] : {Case{16, 0.35}, Case{64, 0.56}, Case{200, 0.62}}) {
    TestStore store({.memory_bytes = 32 * kMiB});
    const uint64_t items = Fill(store, value_bytes);
    CAPTURE(value_bytes, items, UserShare(store));
    CHECK(UserShare(store) > user_share);
    CHECK(store.shard().stats().borrowed_places > items / 50);
    KVD_REQUIRE_OK(store.CheckInvariants());
    ReferenceReader reader(store.region().base());
    for (uint64_t i = 0; i < items; ++i) {
      REQUIRE(reader.Get(KeyOf(i)) == std::string(value_bytes, 's'));
      REQUIRE(store.Get(KeyOf(i)).has_value());
    }
  }
}

TEST_CASE("Lending: one that evicts makes room by that instead") {
  TestStore store({.memory_bytes = 16 * kMiB, .evict = true});
  for (uint64_t i = 0; i < 300'000; ++i) {
    REQUIRE(store.Put(KeyOf(i), std::string(64, 's')).status == StoreStatus::kOk);
  }
  CHECK(store.shard().stats().borrowed_places == 0);
  CHECK(store.shard().stats().evicted_items > 0);
}

TEST_CASE("Lending: what was borrowed is given back when there is memory again") {
  for (const uint64_t value_bytes : {16, 64}) {  // for the sake of chains, and of items
    TestStore store({.memory_bytes = 32 * kMiB});
    const uint64_t items = Fill(store, value_bytes);
    REQUIRE(store.shard().stats().borrowed_places > 0);
    // Enough of them that the index has to shrink, with guests in what goes.
    for (uint64_t i = 0; i < items; ++i) {
      if (i % 8 != 0) store.Delete(KeyOf(i));
      if (i % (items / 8) == 0) KVD_REQUIRE_OK(store.CheckInvariants());
    }
    WorkAll(store);
    KVD_REQUIRE_OK(store.CheckInvariants());
    CHECK(store.shard().stats().merges > 0);
    CHECK(store.shard().stats().borrowed_places == 0);
    ReferenceReader reader(store.region().base());
    for (uint64_t i = 0; i < items; ++i) {
      REQUIRE(reader.Get(KeyOf(i)).has_value() == (i % 8 == 0));
    }
  }
}

TEST_CASE("Lending: a bucket's own items come before its guests") {
  TestStore store({.memory_bytes = 16 * kMiB});
  const auto spared = [&](const std::string& key) { return store.Hash(key) % 1024 == 5; };
  Fill(store, 64, spared);
  REQUIRE(store.shard().stats().borrowed_places > 0);
  // Somewhere guests can go.
  uint64_t deleted = 0;
  for (uint64_t i = 0; deleted < 2000; ++i) {
    if (!spared(KeyOf(i))) deleted += store.Delete(KeyOf(i)).status == StoreStatus::kOk ? 1 : 0;
  }
  const uint64_t local_before = store.shard().stats().local_items;
  uint64_t own = 0;
  for (uint64_t i = 0; own < 8; ++i) {
    if (!spared(KeyOf(i))) continue;
    REQUIRE(store.Put(KeyOf(i), std::string(64, 'o')).status == StoreStatus::kOk);
    ++own;
  }
  CHECK(store.shard().stats().local_items == local_before + own);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

// A new key's bucket is full, so it borrows memory for a header first; then room is made for the
// value by two segments of merges, which take the bucket and its lender.
TEST_CASE("Lending: a header that is not linked yet does not stand in the way of merges") {
  constexpr uint32_t kBuckets = 4096;
  constexpr uint32_t kLast = 4092;  // in the last segment
  int tried = 0;
  for (int attempt = 0; attempt < 10; ++attempt) {
    TestStore store({.memory_bytes = 16 * kMiB});
    std::vector<std::vector<std::string>> small(kBuckets);
    std::vector<uint32_t> in_bucket(kBuckets);
    const auto bucket_of = [&](const std::string& key) { return store.Hash(key) % kBuckets; };
    const auto put_small = [&](const std::string& key) {
      REQUIRE(store.Put(key, std::string(16, 's')).status == StoreStatus::kOk);
      small[bucket_of(key)].push_back(key);
      ++in_bucket[bucket_of(key)];
    };
    const auto drop_small = [&](uint32_t bucket) {
      REQUIRE(store.Delete(small[bucket].back()).status == StoreStatus::kOk);
      small[bucket].pop_back();
      --in_bucket[bucket];
    };
    const auto fill_bucket = [&](uint32_t bucket, uint32_t items) {
      for (uint64_t i = 0; in_bucket[bucket] < items; ++i) {
        const std::string key = std::to_string(bucket) + "-" + std::to_string(i);
        if (bucket_of(key) == bucket) put_small(key);
      }
    };
    for (uint64_t i = 0; store.shard().buckets() < kBuckets; ++i) put_small(KeyOf(i));
    for (uint32_t b = 0; store.shard().stats().items > 36'000; b = (b + 1) % kBuckets) {
      if (!small[b].empty()) drop_small(b);
    }
    uint64_t large = 0;
    for (const uint64_t bytes : {60'000, 4'000, 450}) {
      for (;; ++large) {
        const std::string key = "big" + std::to_string(large);
        if (store.Put(key, std::string(bytes, 'b')).status != StoreStatus::kOk) break;
        ++in_bucket[bucket_of(key)];
      }
    }
    for (uint32_t b = 0; b < kBuckets; ++b) {
      while (in_bucket[b] > 3 && !small[b].empty()) drop_small(b);
    }
    // Chains, until the heap has no memory for a header.
    for (uint32_t b = 1023; store.shard().stats().borrowed_places == 0; --b) {
      fill_bucket(b, 17);
      if (store.shard().stats().borrowed_places == 0) continue;
      drop_small(b);
      break;
    }
    while (!small[kLast - kBuckets / 2].empty()) drop_small(kLast - kBuckets / 2);
    if (in_bucket[kLast - kBuckets / 2] != 0) continue;  // merged, it would have more than 16
    ++tried;
    fill_bucket(kLast, 16);
    std::string key;
    for (uint64_t i = 0; bucket_of(key = "large" + std::to_string(i)) != kLast; ++i) continue;
    const uint64_t merges = store.shard().stats().merges;
    CHECK(store.Put(key, std::string(1'600'000, 'L')).status == StoreStatus::kOk);
    CHECK(store.shard().stats().merges >= merges + 2000);
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
  CHECK(tried > 0);
}

// In a full store hardly any bucket but the one that has just lost a guest has room.
TEST_CASE("Lending: an item that was deleted in a full store finds room again") {
  for (const uint64_t value_bytes : {16, 64}) {
    TestStore store({.memory_bytes = 16 * kMiB});
    uint64_t items = 0;
    for (uint64_t refused = 0; refused < 20'000; ++items) {
      if (store.Put(KeyOf(items), std::string(value_bytes, 's')).status != StoreStatus::kOk) {
        ++refused;
      }
    }
    uint64_t tried = 0;
    uint64_t refused = 0;
    for (uint64_t i = 0; i < items; i += 7) {
      if (store.Delete(KeyOf(i)).status != StoreStatus::kOk) continue;
      ++tried;
      if (store.Put(KeyOf(i), std::string(value_bytes, 's')).status != StoreStatus::kOk) ++refused;
    }
    CAPTURE(value_bytes, items, tried, refused);
    CHECK(refused * 200 <= tried);  // a split may take it; without looking there, one in ten
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
}

TEST_CASE("Lending: whatever is written to a full store, it stays whole, and knows what it has") {
  Random random(test::Seed());
  for (const uint32_t bucket_bytes : {512u, 1024u, 4096u}) {
    TestStore store({.memory_bytes = 8 * kMiB, .bucket_bytes = bucket_bytes});
    std::map<std::string, std::string> model;
    const auto value_of = [&]() {
      const uint64_t bytes = random.OneIn(64)  ? random.Uniform(100'000)
                             : random.OneIn(8) ? random.Uniform(1000)
                                               : random.Uniform(120);
      return std::string(bytes, static_cast<char>('a' + random.Uniform(26)));
    };
    uint64_t refused = 0;
    uint64_t borrowed_max = 0;
    const uint64_t steps = 300'000 / kSanitizerFactor;
    Slot held = kEmptySlot;
    for (uint64_t step = 0; step < steps; ++step) {
      // Fills, then lives with what is there, then is emptied.
      const bool filling = step % (steps / 3) < steps / 5;
      const std::string key = KeyOf(random.Uniform(60'000));
      if (random.OneIn(filling ? 20 : 2)) {
        REQUIRE((store.Delete(key).status == StoreStatus::kOk) == (model.erase(key) == 1));
      } else if (random.OneIn(50) && model.count(key) != 0 && model[key].size() < 2000) {
        if (store.Extend(key, Shard::End::kBack, "more").status == StoreStatus::kOk)
          model[key] += "more";
      } else {
        const std::string value = value_of();
        const StoreStatus status = store.Put(key, value).status;
        if (status == StoreStatus::kOk) model[key] = value;
        refused += status == StoreStatus::kOk ? 0 : 1;
      }
      if (random.OneIn(500)) {
        if (held != kEmptySlot) store.shard().Release(held);
        ItemView item;
        const std::string wanted = KeyOf(random.Uniform(60'000));
        const bool there =
            store.shard().Find(wanted, store.Hash(wanted), item, held) == StoreStatus::kOk;
        if (there) store.shard().Hold(held);
        if (!there) held = kEmptySlot;
      }
      if (random.OneIn(16)) store.shard().Work();
      borrowed_max = std::max(borrowed_max, store.shard().stats().borrowed_places);
      if (step % (steps / 60) == 0) KVD_REQUIRE_OK(store.CheckInvariants());
    }
    CAPTURE(bucket_bytes, refused, borrowed_max, model.size());
    CHECK(refused > 0);
    CHECK(borrowed_max > 100);
    KVD_REQUIRE_OK(store.CheckInvariants());
    REQUIRE(store.shard().stats().items == model.size());
    ReferenceReader reader(store.region().base());
    for (const auto& [key, value] : model) REQUIRE(reader.Get(key) == value);
  }
}

}  // namespace
}  // namespace kvd
