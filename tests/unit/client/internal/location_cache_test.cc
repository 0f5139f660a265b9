#include "client/internal/location_cache.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/hash.h"
#include "common/base/random.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr uint64_t kEntries = 16;

// A slot that tells whose it is, and that differs from one `round` to the next.
Slot SlotFor(uint64_t hash, uint64_t round) { return Mix64(hash) << 16 | (round & 0xffff) | 1; }
bool IsSlotFor(uint64_t hash, Slot slot) { return slot >> 16 == (Mix64(hash) << 16) >> 16; }

// Words as two stores by different threads may leave them.
void Tear(const LocationEntry& first, const LocationEntry& second, LocationEntry& torn) {
  torn.hash_xor_slot = first.hash_xor_slot.load();
  torn.slot = second.slot.load();
}

}  // namespace

TEST_CASE("LocationCache: finds what was remembered last for that hash, and for no other") {
  const auto cache = LocationCache::Create(kEntries).value();
  CHECK(cache->Find(5) == kEmptySlot);
  cache->Remember(5, 0x1234);
  CHECK(cache->Find(5) == 0x1234);
  CHECK(cache->Find(5 + kEntries) == kEmptySlot);
  cache->Remember(5, 0x5678);
  CHECK(cache->Find(5) == 0x5678);
  cache->Remember(6, 0x9abc);
  CHECK(cache->Find(5) == 0x5678);
  // To the same place.
  cache->Remember(5 + kEntries, 0xdef0);
  CHECK(cache->Find(5 + kEntries) == 0xdef0);
  CHECK(cache->Find(5) == kEmptySlot);
}

TEST_CASE("LocationCache: to forget a key leaves alone what another one has put in its place") {
  const auto cache = LocationCache::Create(kEntries).value();
  cache->Remember(5, 0x1234);
  cache->Forget(5 + kEntries);
  CHECK(cache->Find(5) == 0x1234);
  cache->Remember(5 + kEntries, kEmptySlot);
  CHECK(cache->Find(5) == 0x1234);
  cache->Forget(5);
  CHECK(cache->Find(5) == kEmptySlot);
  cache->Forget(0);
  CHECK(cache->Find(0) == kEmptySlot);
}

TEST_CASE("LocationCache: of no entries remembers nothing; of too many is refused") {
  const auto none = LocationCache::Create(0).value();
  none->Remember(5, 0x1234);
  none->Forget(5);
  CHECK(none->Find(5) == kEmptySlot);
  KVD_REQUIRE_CODE(LocationCache::Create(LocationCache::kEntriesMax + 1), kInvalidArgument);
}

TEST_CASE("LocationCache: a number of entries is rounded up to a power of two") {
  const auto cache = LocationCache::Create(9).value();
  for (uint64_t hash = 0; hash < 16; ++hash) cache->Remember(hash, hash + 100);
  for (uint64_t hash = 0; hash < 16; ++hash) CHECK(cache->Find(hash) == hash + 100);
}

TEST_CASE("LocationCache: an entry with words of two writers gives neither of them a wrong slot") {
  LocationEntry first;
  LocationEntry second;
  LocationEntry torn;
  SECTION("of one key, at two places") {
    first.Set(0x11115, 0x1234);
    second.Set(0x11115, 0x5678);
    Tear(first, second, torn);
    CHECK(torn.Find(0x11115) == kEmptySlot);
  }
  SECTION("of two keys") {
    first.Set(0x11115, 0x1234);
    second.Set(0x22225, 0x5678);
    Tear(first, second, torn);
    CHECK(torn.Find(0x11115) == kEmptySlot);
    CHECK(torn.Find(0x22225) == kEmptySlot);
  }
  SECTION("of a key, and of one that is forgotten") {
    first.Set(0x11115, 0x1234);
    second.Set(0x11115, kEmptySlot);
    Tear(first, second, torn);
    CHECK(torn.Find(0x11115) == kEmptySlot);
    Tear(second, first, torn);
    CHECK(torn.Find(0x11115) == kEmptySlot);
  }
  // It is an entry like any other afterwards.
  torn.Set(0x11115, 0x9abc);
  CHECK(torn.Find(0x11115) == 0x9abc);
}

// Every thread remembers, forgets and looks for keys that all fall on few entries, as clients do
// that share a cache.
TEST_CASE("LocationCache: threads that write the same entries never find another key's slot") {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200'000;
  const auto cache = LocationCache::Create(2).value();
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 16; ++i) hashes.push_back(Mix64(i + 1));
  std::atomic<int> ready{0};
  std::atomic<uint64_t> found{0};
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Random random(static_cast<uint64_t>(thread) + 1);
      uint64_t found_here = 0;
      uint64_t wrong_here = 0;
      for (++ready; ready != kThreads;) std::this_thread::yield();
      for (uint64_t round = 0; round < kRounds; ++round) {
        const uint64_t written = hashes[random.Uniform(hashes.size())];
        cache->Remember(written, random.Uniform(16) == 0 ? kEmptySlot : SlotFor(written, round));
        const uint64_t wanted = hashes[random.Uniform(hashes.size())];
        const Slot slot = cache->Find(wanted);
        if (slot == kEmptySlot) continue;
        ++found_here;
        if (!IsSlotFor(wanted, slot)) ++wrong_here;
      }
      found += found_here;
      wrong += wrong_here;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(found > 0);
}

}  // namespace kvd::test
