// An item that is being replaced stays until its successor is there, whatever goes to make room for
// that: merges take it along, evictions pass it over, and what the new value takes from it is
// whole.
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "tests/model/test_store.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

using test::TestStore;

constexpr uint64_t kSmallValueBytes = 64;

std::string KeyOf(uint64_t i) { return "key" + std::to_string(i); }

// Keeps an evicting store's whole memory in use by items that lie in buckets.
class SmallItems {
 public:
  explicit SmallItems(TestStore& store) : store_(store) {}

  // Until there are no free pages, and some more.
  void Fill() {
    while (store_.region().free_bytes() >= kSegmentBytes) Put();
    for (int i = 0; i < 2000; ++i) Put();
  }

  // One that lies in the table's last segment. Never a key that was taken before.
  std::string TakeFromLastSegment() {
    const uint32_t per_segment = store_.region().geometry().buckets_per_segment();
    const uint32_t last = (store_.shard().buckets() - 1) / per_segment;
    for (;;) {
      REQUIRE(oldest_ < next_);
      std::string key = KeyOf(oldest_++);
      const BucketIndex bucket = BucketOf(store_.Hash(key), store_.shard().buckets());
      if (ToNumber(bucket) / per_segment != last) continue;
      if (store_.shard().Peek(key, store_.Hash(key))) return key;
    }
  }

  // All but that one are used.
  void UseAllBut(const std::string& key) {
    for (uint64_t i = 0; i < next_; ++i) {
      if (KeyOf(i) != key) store_.shard().NoteHit(store_.Hash(KeyOf(i)));
    }
  }

 private:
  void Put() {
    REQUIRE(store_.Put(KeyOf(next_++), std::string(kSmallValueBytes, 's')).status ==
            StoreStatus::kOk);
    store_.shard().Work();
  }

  TestStore& store_;
  uint64_t next_ = 0;
  uint64_t oldest_ = 0;
};

TEST_CASE("Replacing: the oldest item of a bucket that goes is there until its successor is") {
  TestStore store({.memory_bytes = 8 * kMiB, .evict = true});
  SmallItems items(store);
  uint64_t merges = 0;
  for (int round = 0; round < 20; ++round) {
    items.Fill();
    const std::string key = items.TakeFromLastSegment();
    items.UseAllBut(key);
    const ShardStats before = store.shard().stats();
    REQUIRE(store.Put(key, std::string(900'000, 'L')).status == StoreStatus::kOk);
    const ShardStats after = store.shard().stats();
    merges += after.merges - before.merges;
    REQUIRE(after.overwrites_moved == before.overwrites_moved + 1);
    store.Delete(key);
  }
  CHECK(merges > 5'000);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

// Memory that cannot go lies in the middle, so that what is wanted is had only below it, where most
// of the table is: the item comes from the last segment into the third, and that is merged as well.
TEST_CASE("Replacing: an item that two merges move is there until its successor is") {
  TestStore store({.memory_bytes = 10 * kMiB, .evict = true});
  Shard& shard = store.shard();
  SmallItems items(store);
  items.Fill();
  Reservation reservation;
  REQUIRE(shard.Reserve("r", store.Hash("r"), 600'000, reservation).status == StoreStatus::kOk);
  int moved_twice = 0;
  for (int round = 0; moved_twice < 5; ++round) {
    REQUIRE(round < 200);
    items.Fill();
    const std::string key = items.TakeFromLastSegment();
    items.UseAllBut(key);
    const uint32_t bucket = ToNumber(BucketOf(store.Hash(key), shard.buckets()));
    const uint32_t parent = bucket - std::bit_floor(bucket);
    const uint64_t replaced = shard.stats().overwrites_moved;
    REQUIRE(store.Put(key, std::string(4'900'000, 'L')).status == StoreStatus::kOk);
    if (shard.buckets() <= parent) ++moved_twice;
    REQUIRE(shard.stats().overwrites_moved == replaced + 1);
    store.Delete(key);
  }
  shard.Abort(reservation);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Replacing: what is put in front of an item in a bucket that goes does not harm it") {
  TestStore store({.memory_bytes = 8 * kMiB, .evict = true});
  SmallItems items(store);
  for (int round = 0; round < 40; ++round) {
    items.Fill();
    const std::string key = items.TakeFromLastSegment();
    const std::string piece(900'000, 'p');
    const Shard::End end = round % 2 == 0 ? Shard::End::kFront : Shard::End::kBack;
    const std::string before(kSmallValueBytes, 's');
    REQUIRE(store.Extend(key, end, piece).status == StoreStatus::kOk);
    REQUIRE(store.Get(key) == (end == Shard::End::kFront ? piece + before : before + piece));
    store.Delete(key);
  }
  KVD_REQUIRE_OK(store.CheckInvariants());
}

TEST_CASE("Replacing: an old item of the heap is passed over when all around it goes") {
  TestStore store({.memory_bytes = 16 * kMiB, .evict = true});
  uint64_t next = 0;
  uint64_t oldest = 0;
  for (int round = 0; round < 60; ++round) {
    const uint64_t until = next + (round == 0 ? 6'000 : 200);
    for (; next < until; ++next) {
      REQUIRE(store.Put(KeyOf(next), std::string(3000, 'v')).status == StoreStatus::kOk);
    }
    // One in the midst of those that go next.
    for (int there = 0; there < 40; ++oldest) {
      if (store.shard().Peek(KeyOf(oldest), store.Hash(KeyOf(oldest)))) ++there;
    }
    const std::string key = KeyOf(oldest - 1);
    const uint64_t replaced = store.shard().stats().overwrites_moved;
    const std::string piece(400'000, 'p');
    REQUIRE(store.Extend(key, Shard::End::kFront, piece).status == StoreStatus::kOk);
    REQUIRE(store.shard().stats().overwrites_moved == replaced + 1);
    REQUIRE(store.Get(key) == piece + std::string(3000, 'v'));
  }
  KVD_REQUIRE_OK(store.CheckInvariants());
}

// No eviction here: it is the index that gives memory back, for the header of a chain.
TEST_CASE("Replacing: a key that is committed follows its bucket where a merge takes that") {
  // One that evicts: another would borrow before it merges.
  TestStore store({.memory_bytes = 8 * kMiB, .evict = true});
  Shard& shard = store.shard();
  for (uint64_t i = 0; i < 20'000; ++i) store.Put(KeyOf(i), "v");
  while (shard.Work()) continue;
  for (uint64_t i = 0; i < 20'000; ++i) store.Delete(KeyOf(i));
  const uint32_t last = shard.buckets() - 1;
  REQUIRE(last > 2 * store.region().geometry().buckets_per_segment());
  const auto bucket_of = [&](const std::string& key) {
    return ToNumber(BucketOf(store.Hash(key), last + 1));
  };
  // As many as the last bucket's header takes, and one more, which is not there yet.
  std::vector<std::string> keys;
  for (uint64_t i = 0; keys.size() < kSlotsPerHeader + 1; ++i) {
    std::string key = "k" + std::to_string(i);
    if (bucket_of(key) == last) keys.push_back(std::move(key));
  }
  Reservation reservation;
  REQUIRE(shard.Reserve(keys.back(), store.Hash(keys.back()), 3000, reservation).status ==
          StoreStatus::kOk);
  std::memset(reservation.value, 'r', 3000);
  // In the heap, or one of them would go to make room.
  for (size_t i = 0; i + 1 < keys.size(); ++i) store.Put(keys[i], std::string(1000, 'v'));
  // Until not a page is free, nor room for a header in the last one; no allocation has failed.
  std::vector<Reservation> fill;
  const auto reserve_as_a_header = [&] {
    const uint64_t value_bytes = kBucketHeaderBytes - kItemHeaderBytes - 1;
    REQUIRE(shard.Reserve("f", store.Hash("f"), value_bytes, fill.emplace_back()).status ==
            StoreStatus::kOk);
    REQUIRE(ItemBytesOf(fill.back().slot) == kBucketHeaderBytes);
  };
  while (store.region().free_bytes() > 0) reserve_as_a_header();
  for (uint32_t i = 1; i < kPageBytes / kBucketHeaderBytes; ++i) reserve_as_a_header();
  REQUIRE(shard.stats().merges == 0);
  REQUIRE(shard.Commit(reservation).status == StoreStatus::kOk);
  CHECK(shard.stats().merges > 0);
  CHECK(store.Get(keys.back()) == std::string(3000, 'r'));
  for (const Reservation& reserved : fill) shard.Abort(reserved);
  KVD_REQUIRE_OK(store.CheckInvariants());
}

}  // namespace
}  // namespace kvd
