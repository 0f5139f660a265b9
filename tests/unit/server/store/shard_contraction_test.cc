// The index shrinks: what it had taken for many small items becomes room for others.
#include <cstring>
#include <string>
#include <vector>

#include "common/layout/bucket.h"
#include "common/protocol/racy_copy.h"
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
  for (uint32_t i = 0; i < store.region().geometry().shard_count; ++i) {
    while (store.shard(i).Work()) continue;
  }
}

// Puts items of 8 + 64 bytes until one is refused or, with eviction, until there are no more free
// pages and then half as many again. How many were put.
uint64_t FillWithSmallItems(TestStore& store, bool evict) {
  const std::string value(64, 's');
  uint64_t next = 0;
  uint64_t more = UINT64_MAX;
  for (; next < more; ++next) {
    if (store.Put(KeyOf(next), value).status != StoreStatus::kOk) break;
    store.ShardOfKey(KeyOf(next)).Work();
    if (evict && more == UINT64_MAX && store.region().free_bytes() < kSegmentBytes) {
      more = next + next / 2;
    }
  }
  return next;
}

uint64_t LargePutsThatSucceed(TestStore& store, uint64_t count, uint64_t bytes) {
  const std::string value(bytes, 'L');
  uint64_t succeeded = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string key = "large" + std::to_string(i);
    if (store.Put(key, value).status == StoreStatus::kOk && store.Get(key) == value) ++succeeded;
    WorkAll(store);
  }
  return succeeded;
}

TEST_CASE("Contraction: a table that has lost its items goes back to its first segment") {
  TestStore store({.memory_bytes = 32 * kMiB});
  ReferenceReader reader(store.region().base());
  const uint64_t free_at_first = store.region().free_bytes();
  for (int round = 0; round < 2; ++round) {
    const uint64_t items = 60'000;
    for (uint64_t i = 0; i < items; ++i) store.Put(KeyOf(i), std::string(60, 'v'));
    WorkAll(store);
    const uint64_t grown = store.shard().stats().index_bytes;
    CHECK(grown >= 5 * kMiB);
    KVD_REQUIRE_OK(store.CheckInvariants());
    for (uint64_t i = 100; i < items; ++i) store.Delete(KeyOf(i));
    WorkAll(store);
    KVD_REQUIRE_OK(store.CheckInvariants());
    CHECK(store.shard().stats().index_bytes == kSegmentBytes);
    CHECK(store.shard().buckets() == store.region().geometry().buckets_per_segment());
    for (uint64_t i = 0; i < 100; ++i) REQUIRE(reader.Get(KeyOf(i)) == std::string(60, 'v'));
    for (uint64_t i = 100; i < items; i += 7) REQUIRE_FALSE(reader.Get(KeyOf(i)).has_value());
    for (uint64_t i = 0; i < 100; ++i) store.Delete(KeyOf(i));
    CHECK(store.region().free_bytes() >= free_at_first - 64 * kPageBytes);
  }
  CHECK(store.shard().stats().index_bytes_given_back >= 8 * kMiB);
}

TEST_CASE("Contraction: an evicting shard that finds room by it takes that once") {
  TestStore store({.memory_bytes = 16 * kMiB, .evict = true});
  FillWithSmallItems(store, /*evict=*/true);
  for (uint64_t i = 0; i < 400'000; ++i) store.Delete(KeyOf(i));
  for (const uint64_t mib : {9, 5}) {
    REQUIRE(store.Put("large", std::string(mib * kMiB, 'L')).status == StoreStatus::kOk);
    KVD_REQUIRE_OK(store.CheckInvariants());
    store.Delete("large");
  }
}

TEST_CASE("Contraction: growth and shrinking do not go to and fro") {
  TestStore store({.memory_bytes = 32 * kMiB});
  const uint64_t items = 40'000;
  for (uint64_t i = 0; i < items; ++i) store.Put(KeyOf(i), std::string(60, 'v'));
  WorkAll(store);
  const uint64_t splits = store.shard().stats().splits;
  CHECK(store.shard().stats().merges == 0);
  // Half of them may go and come back.
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < items / 2; ++i) store.Delete(KeyOf(i));
    WorkAll(store);
    for (uint64_t i = 0; i < items / 2; ++i) store.Put(KeyOf(i), std::string(60, 'v'));
    WorkAll(store);
  }
  CHECK(store.shard().stats().merges == 0);
  CHECK(store.shard().stats().splits == splits);
  // And when it does shrink, it stays so for as long as it does not grow.
  for (uint64_t i = 0; i < items * 3 / 4; ++i) store.Delete(KeyOf(i));
  WorkAll(store);
  const uint64_t merges = store.shard().stats().merges;
  CHECK(merges > 0);
  for (uint64_t i = items * 3 / 4; i < items; ++i) store.Put(KeyOf(i), std::string(60, 'w'));
  WorkAll(store);
  CHECK(store.shard().stats().merges == merges);
  CHECK(store.shard().stats().splits == splits);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Contraction: a store full of small items takes large ones after a flush") {
  for (const uint32_t shards : {1u, 4u}) {
    TestStore store({.memory_bytes = 64 * kMiB / kSanitizerFactor, .shard_count = shards});
    FillWithSmallItems(store, /*evict=*/false);
    uint64_t index_bytes = 0;
    for (uint32_t i = 0; i < shards; ++i) index_bytes += store.shard(i).stats().index_bytes;
    CHECK(index_bytes > store.region().bytes() / 2);
    CHECK(LargePutsThatSucceed(store, 3, 100'000) == 0);
    // Nobody calls Work: the writes themselves take what they need.
    for (uint32_t i = 0; i < shards; ++i) {
      uint32_t position = 0;
      do {
        position = store.shard(i).Flush("", position).next_position;
      } while (position != 0);
    }
    CHECK(LargePutsThatSucceed(store, 10, 100'000) == 10);
    WorkAll(store);
    for (uint32_t i = 0; i < shards; ++i) {
      CHECK(store.shard(i).stats().index_bytes == kSegmentBytes);
    }
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
}

TEST_CASE(
    "Contraction: a write in need makes the index smaller by itself, as far as it is sparse") {
  TestStore store({.memory_bytes = 16 * kMiB});
  const uint64_t items = FillWithSmallItems(store, /*evict=*/false);
  for (uint64_t i = 0; i < items * 6 / 10; ++i) store.Delete(KeyOf(i));
  const uint64_t index_bytes = store.shard().stats().index_bytes;
  uint64_t stored = 0;
  while (store.Put("large" + std::to_string(stored), std::string(100'000, 'v')).status ==
         StoreStatus::kOk) {
    ++stored;
  }
  CHECK(stored > 20);
  CHECK(store.shard().stats().index_bytes < index_bytes);
  for (uint64_t i = items * 6 / 10; i < items; ++i) {
    REQUIRE(store.Get(KeyOf(i)) == std::string(64, 's'));
  }
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Contraction: with eviction a store full of small items takes large ones, and back") {
  for (const uint32_t shards : {1u, 2u, 4u}) {
    TestStore store({.memory_bytes = (shards == 1 ? 64 : 24) * kMiB / kSanitizerFactor,
                     .shard_count = shards,
                     .evict = true});
    const uint64_t items = FillWithSmallItems(store, /*evict=*/true);
    CAPTURE(shards, items);
    CHECK(LargePutsThatSucceed(store, 10, 100'000) == 10);
    KVD_REQUIRE_OK(store.CheckInvariants());
    const uint64_t many = store.region().bytes() * 2 / 100'000;
    CHECK(LargePutsThatSucceed(store, many, 100'000) == many);
    KVD_REQUIRE_OK(store.CheckInvariants());
    const std::string value(64, 's');
    uint64_t refused = 0;
    for (uint64_t i = 0; i < items; ++i) {
      refused += store.Put(KeyOf(i), value).status == StoreStatus::kOk ? 0 : 1;
      store.ShardOfKey(KeyOf(i)).Work();
    }
    CHECK(refused == 0);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < items; ++i) kept += store.Get(KeyOf(i)).has_value() ? 1 : 0;
    CHECK(kept > items / 3);  // the memory is theirs again, not that of large ones nobody reads
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
}

TEST_CASE(
    "Contraction: with eviction and one shard, values up to a quarter of the memory find room") {
  for (const uint64_t bytes : {uint64_t{1} << 20, uint64_t{5} << 20, uint64_t{16} << 20}) {
    TestStore store({.memory_bytes = 64 * kMiB, .evict = true});
    FillWithSmallItems(store, /*evict=*/true);
    CAPTURE(bytes);
    CHECK(LargePutsThatSucceed(store, 10, bytes - 100) == 10);
    KVD_REQUIRE_OK(store.CheckInvariants());
  }
}

TEST_CASE("Contraction: what buckets hold goes only if it is older than what the heap holds") {
  TestStore store({.memory_bytes = 16 * kMiB, .evict = true});
  const std::string large(50'000, 'L');
  for (int i = 0; i < 200; ++i) store.Put("old" + std::to_string(i), large);
  const uint64_t items = 20'000;
  for (uint64_t i = 0; i < items; ++i) store.Put(KeyOf(i), std::string(64, 's'));
  const auto kept = [&] {
    uint64_t count = 0;
    for (uint64_t i = 0; i < items; ++i) {
      if (store.shard().Peek(KeyOf(i), store.Hash(KeyOf(i)))) ++count;
    }
    return count;
  };
  const uint64_t before = kept();
  const auto use_all = [&] {
    for (uint64_t i = 0; i < items; ++i) store.shard().NoteHit(store.Hash(KeyOf(i)));
  };
  use_all();
  for (int i = 0; i < 60; ++i)
    REQUIRE(store.Put("new" + std::to_string(i), large).status == StoreStatus::kOk);
  // Victims are sampled, so some of those that were just used go as well: 2 to 3 of 100.
  CHECK(kept() > before * 93 / 100);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Contraction: a held item keeps its bytes, and its segment, until it is released") {
  const bool in_upper_half = GENERATE(false, true);
  TestStore store({.memory_bytes = 16 * kMiB});
  Shard& shard = store.shard();
  const uint64_t items = 33'000;
  for (uint64_t i = 0; i < items; ++i) store.Put(KeyOf(i), std::string(60, 'v'));
  WorkAll(store);
  // One that lies in the last segment.
  const uint32_t per_segment = store.region().geometry().buckets_per_segment();
  const uint32_t last_segment = (shard.buckets() - 1) / per_segment;
  std::string key;
  StoreResult held;
  for (uint64_t i = 0; key.empty(); ++i) {
    ItemView item;
    Slot slot;
    REQUIRE(shard.Find(KeyOf(i), store.Hash(KeyOf(i)), item, slot) == StoreStatus::kOk);
    const uint32_t bucket = ToNumber(BucketOf(store.Hash(KeyOf(i)), shard.buckets()));
    if (bucket / per_segment != last_segment) continue;
    if ((bucket % per_segment >= per_segment / 2) != in_upper_half) continue;
    if (ItemBytesOf(slot) > 200) continue;
    key = KeyOf(i);
    held = {.version = item.version, .slot = slot};
  }
  shard.Hold(held.slot);
  for (uint64_t i = 0; i < items; ++i) {
    if (KeyOf(i) != key) store.Delete(KeyOf(i));
  }
  WorkAll(store);
  CHECK(store.Get(key) == std::string(60, 'v'));
  store.Delete(key);
  WorkAll(store);
  const uint64_t kept = shard.stats().index_bytes;
  CHECK(kept > kSegmentBytes);
  for (uint64_t i = 0; i < 100; ++i)
    store.Put("large" + std::to_string(i), std::string(100'000, 'L'));
  // It grows again over the place of the held item.
  for (uint64_t i = 0; i < items; ++i) store.Put(KeyOf(i), std::string(20, 'w'));
  WorkAll(store);
  ItemView item;
  const std::span<const std::byte> bytes(store.region().At(LocationOf(held.slot)),
                                         ItemBytesOf(held.slot));
  CHECK(JudgeItem(bytes,
                  {.incarnation = store.region().geometry().incarnation,
                   .location = LocationOf(held.slot),
                   .key = key,
                   .held_version = held.version},
                  item) == ItemVerdict::kCurrent);
  KVD_REQUIRE_OK(store.CheckInvariants());
  for (uint64_t i = 0; i < items; ++i) store.Delete(KeyOf(i));
  shard.Release(held.slot);
  WorkAll(store);
  CHECK(shard.stats().index_bytes == kSegmentBytes);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Contraction: a bucket that is made anew goes on with its versions") {
  TestStore store({.memory_bytes = 16 * kMiB});
  const Geometry& geometry = store.region().geometry();
  const uint32_t per_segment = geometry.buckets_per_segment();
  const RegionOffset segment{kSegmentBytes * 2};
  std::vector<uint32_t> last(per_segment, 0);
  // Of each of the segment's buckets; how many have no higher version than before.
  const auto gone_back = [&] {
    uint32_t count = 0;
    for (uint32_t i = 0; i < per_segment; ++i) {
      const auto* header = reinterpret_cast<const BucketHeader*>(
          store.region().At(segment + uint64_t{i} * geometry.bucket_bytes));
      if (header->version <= last[i]) ++count;
      last[i] = header->version;
    }
    return count;
  };
  for (int round = 0; round < 4; ++round) {
    for (uint64_t i = 0; i < 15'000; ++i) store.Put(KeyOf(i), "v");
    WorkAll(store);
    REQUIRE(store.shard().buckets() > per_segment);
    // Segments are given out again where they lay: there is nobody else.
    CHECK(gone_back() == 0);
    // Some buckets are written more often than others.
    for (uint64_t i = 0; i < 300; ++i)
      store.Put(KeyOf(i % 30), std::string(i / 30 % 2 * 40 + 1, 'v'));
    for (uint64_t i = 0; i < 15'000; ++i) store.Delete(KeyOf(i));
    WorkAll(store);
    REQUIRE(store.shard().buckets() == per_segment);
    gone_back();
    // What lies there meanwhile is anything.
    std::memset(store.region().At(segment), 0, kSegmentBytes);
  }
}

TEST_CASE("Contraction: the directory names no segment that was given back") {
  TestStore store({.memory_bytes = 16 * kMiB, .shard_count = 2});
  const Geometry& geometry = store.region().geometry();
  const auto named = [&](uint32_t shard) {
    uint64_t count = 0;
    for (uint64_t entry = shard; entry < geometry.directory_entries; entry += 2) {
      if (RacyLoad64(store.region().At(RegionOffset{geometry.directory_offset + entry * 8})) != 0) {
        ++count;
      }
    }
    return count;
  };
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < 40'000; ++i) store.Put(KeyOf(i), std::string(60, 'v'));
    WorkAll(store);
    for (uint32_t shard : {0u, 1u}) {
      CHECK(named(shard) > 1);
      CHECK(named(shard) == store.shard(shard).stats().index_bytes / kSegmentBytes);
    }
    for (uint64_t i = 0; i < 40'000; ++i) store.Delete(KeyOf(i));
    WorkAll(store);
    for (uint32_t shard : {0u, 1u}) CHECK(named(shard) == 1);
  }
}

TEST_CASE("Contraction: items that expire are met by the sweep wherever merges take them") {
  TestStore store({.memory_bytes = 16 * kMiB});
  StoreOptions expiring;
  expiring.extras.expiry_unix_us = store.now_unix_us() + 60'000'000;
  for (uint64_t i = 0; i < 20'000; ++i)
    store.Put(KeyOf(i), "v", i % 50 == 0 ? expiring : StoreOptions{});
  WorkAll(store);
  for (uint64_t i = 0; i < 20'000; ++i) {
    if (i % 50 != 0) store.Delete(KeyOf(i));
  }
  WorkAll(store);
  CHECK(store.shard().stats().merges > 500);
  CHECK(store.shard().stats().items == 400);
  KVD_REQUIRE_OK(store.CheckInvariants());
  store.clock().AdvanceMs(100'000);
  store.RefreshClocks();
  WorkAll(store);
  CHECK(store.shard().stats().items == 0);
  CHECK(store.shard().stats().expired_items == 400);
}

TEST_CASE("Contraction: a write that builds on an item in a bucket which goes is whole") {
  TestStore store({.memory_bytes = 16 * kMiB, .evict = true});
  const uint64_t items = FillWithSmallItems(store, /*evict=*/true);
  const std::string piece(600'000, 'p');
  uint64_t extended = 0;
  for (uint64_t i = items - 200; i < items; ++i) {
    const std::string before = store.Get(KeyOf(i)).value_or("");
    const Shard::End end = i % 2 == 0 ? Shard::End::kBack : Shard::End::kFront;
    REQUIRE(store.Extend(KeyOf(i), end, piece).status == StoreStatus::kOk);
    REQUIRE(store.Get(KeyOf(i)) == (i % 2 == 0 ? before + piece : piece + before));
    if (!before.empty()) ++extended;
  }
  CHECK(extended > 100);
  CHECK(store.shard().stats().merges > 500);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Contraction: a flush meets every key while the table shrinks and grows") {
  TestStore store({.memory_bytes = 64 * kMiB});
  for (int i = 0; i < 10'000; ++i) store.Put("old" + std::to_string(i), "value");
  for (int i = 0; i < 60'000; ++i) store.Put("new" + std::to_string(i), "value");
  WorkAll(store);
  uint64_t flushed = 0;
  uint32_t position = 0;
  int stretch = 0;
  do {
    const Shard::Flushed some = store.shard().Flush("old", position);
    flushed += some.items;
    CHECK((some.next_position == 0 || some.next_position > position));
    position = some.next_position;
    // To and fro: many stretches see the table shrink, many see it grow.
    if (++stretch % 16 == 1) {
      for (int i = 0; i < 60'000; ++i) store.Delete("new" + std::to_string(i));
    } else if (stretch % 16 == 9) {
      for (int i = 0; i < 60'000; ++i) store.Put("new" + std::to_string(i), "value");
    }
    for (int i = 0; i < 600 && store.shard().Work(); ++i) continue;
  } while (position != 0);
  CHECK(flushed == 10'000);
  CHECK(store.shard().stats().merges > 1000);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

}  // namespace
}  // namespace kvd
