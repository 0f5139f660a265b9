#include "server/store/heap.h"

#include <map>
#include <vector>

#include "common/base/random.h"
#include "common/base/units.h"
#include "common/layout/bucket.h"
#include "common/layout/slot.h"
#include "server/store/size_classes.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

constexpr uint64_t kRegionBytes = 64 * kMiB;

struct HeapUnderTest {
  PageAllocator pages{RegionOffset{kPageBytes}, RegionOffset{kRegionBytes}};
  Heap heap{pages, kRegionBytes};
};

TEST_CASE("SizeClasses: every size gets the smallest class that holds it, within an eighth") {
  for (uint64_t bytes = 1; bytes <= kLargestObjectBytes; ++bytes) {
    const uint32_t size_class = SizeClassOf(bytes);
    INFO(bytes << " bytes, class " << size_class);
    REQUIRE(size_class < kSizeClassCount);
    REQUIRE(ObjectBytes(size_class) >= bytes);
    REQUIRE(ObjectBytes(size_class) % kLocationUnitBytes == 0);
    REQUIRE((size_class == 0 || ObjectBytes(size_class - 1) < bytes));
    if (bytes > kSmallestObjectBytes)
      REQUIRE((ObjectBytes(size_class) - bytes) * 8 < ObjectBytes(size_class) + 64);
  }
}

TEST_CASE("SizeClasses: spans waste less than a sixteenth at their end and their bitmap suffices") {
  for (uint32_t size_class = 0; size_class < kSizeClassCount; ++size_class) {
    INFO("class " << size_class << " of " << ObjectBytes(size_class));
    const uint64_t span = uint64_t{kSpanPages[size_class]} * kPageBytes;
    REQUIRE(ObjectsPerSpan(size_class) >= 1);
    REQUIRE(ObjectsPerSpan(size_class) <= kObjectsPerSpanMax);
    REQUIRE((span - uint64_t{ObjectsPerSpan(size_class)} * ObjectBytes(size_class)) * 16 <= span);
  }
}

TEST_CASE("Heap: overflow headers are aligned to 8 and waste nothing of their class") {
  HeapUnderTest t;
  for (int i = 0; i < 100; ++i)
    REQUIRE(ToBytes(*t.heap.Allocate(kBucketHeaderBytes)) % kLocationUnitBytes == 0);
  REQUIRE(ObjectBytes(SizeClassOf(kBucketHeaderBytes)) == kBucketHeaderBytes);
}

TEST_CASE("Heap: tells what lies in a span, and whose memory would do for whom") {
  HeapUnderTest t;
  const RegionOffset small = *t.heap.Allocate(100);
  const RegionOffset neighbour = *t.heap.Allocate(97);  // of the same class
  const RegionOffset large = *t.heap.Allocate(100'000);
  const Heap::Extent extent = *t.heap.ExtentAt(small);
  CHECK(extent.bytes == Heap::RunFor(100));
  CHECK(t.heap.ExtentAt(neighbour)->begin == extent.begin);
  CHECK(t.heap.ExtentAt(large)->begin == large);
  CHECK(t.heap.ExtentAt(large)->bytes == 25 * kPageBytes);
  CHECK(t.heap.ExtentAt(large + 24 * kPageBytes)->begin == large);  // its last page
  CHECK_FALSE(t.heap.ExtentAt(large + 23 * kPageBytes).has_value());
  CHECK_FALSE(t.heap.ExtentAt(RegionOffset{kPageBytes}).has_value());
  std::vector<RegionOffset> objects;
  t.heap.AppendObjects(small, objects);
  t.heap.AppendObjects(large, objects);
  CHECK(objects == std::vector<RegionOffset>{small, neighbour, large});

  CHECK(t.heap.IsOfClass(small, 99));
  CHECK_FALSE(t.heap.IsOfClass(small, 128));
  CHECK_FALSE(t.heap.IsOfClass(large, 100'000));
  CHECK(t.heap.WouldDo(small, 99));
  CHECK_FALSE(t.heap.WouldDo(small, 10));
  CHECK(t.heap.WouldDo(large, 25 * kPageBytes));
  CHECK_FALSE(t.heap.WouldDo(large, 25 * kPageBytes + 1));
  CHECK(t.heap.WouldDo(large, 10));  // its pages make a span
}

TEST_CASE("Heap: an empty span goes back, but for one") {
  HeapUnderTest t;
  const uint64_t all = t.pages.free_bytes();
  std::vector<RegionOffset> objects;
  for (int i = 0; i < 1000; ++i) objects.push_back(*t.heap.Allocate(96));
  REQUIRE(t.heap.used_bytes() == 96'000);
  REQUIRE(t.heap.held_bytes() < 110'000);
  for (const RegionOffset object : objects) t.heap.Free(object, 96);
  REQUIRE(t.heap.used_bytes() == 0);
  REQUIRE(t.heap.held_bytes() == kPageBytes);
  REQUIRE(t.pages.free_bytes() == all - kPageBytes);
  KVD_REQUIRE_OK(t.heap.CheckInvariants());
}

TEST_CASE("Heap: the span that is kept is given back before an allocation fails") {
  HeapUnderTest t;
  const uint64_t all = t.pages.free_bytes();
  t.heap.Free(*t.heap.Allocate(96), 96);
  REQUIRE(t.pages.free_bytes() == all - kPageBytes);
  const auto everything = t.heap.Allocate(all);
  REQUIRE(everything.has_value());
  REQUIRE_FALSE(t.heap.Allocate(96).has_value());
  t.heap.Free(*everything, all);
  REQUIRE(t.heap.held_bytes() == 0);
  REQUIRE(t.pages.longest_free_run_bytes() == all);
}

TEST_CASE("Heap: knows its objects by their location") {
  HeapUnderTest t;
  const RegionOffset small = *t.heap.Allocate(40);
  const RegionOffset large = *t.heap.Allocate(100'000);
  REQUIRE(t.heap.Contains(small));
  REQUIRE(t.heap.Contains(large));
  t.heap.Free(large, 100'000);
  REQUIRE_FALSE(t.heap.Contains(large));
  REQUIRE_FALSE(t.heap.Contains(RegionOffset{kPageBytes}));
  REQUIRE_FALSE(t.heap.Contains(RegionOffset{2 * kRegionBytes}));
}

// Objects by location; refuses overlaps.
class Ledger {
 public:
  bool Add(RegionOffset at, uint64_t bytes) {
    const uint64_t begin = ToBytes(at);
    const auto next = objects_.lower_bound(begin);
    if (next != objects_.end() && next->first < begin + bytes) return false;
    if (next != objects_.begin() && std::prev(next)->first + std::prev(next)->second > begin)
      return false;
    objects_.emplace(begin, bytes);
    return true;
  }
  std::pair<RegionOffset, uint64_t> TakeAny(Random& random) {
    auto at = objects_.lower_bound(random.Uniform(kRegionBytes));
    if (at == objects_.end()) at = objects_.begin();
    const std::pair<RegionOffset, uint64_t> object{RegionOffset{at->first}, at->second};
    objects_.erase(at);
    return object;
  }
  bool empty() const { return objects_.empty(); }
  size_t size() const { return objects_.size(); }

 private:
  std::map<uint64_t, uint64_t> objects_;
};

TEST_CASE("Heap: random use gives no byte twice and ends with all memory free") {
  Random random(test::Seed());
  HeapUnderTest t;
  const uint64_t all = t.pages.free_bytes();
  Ledger ledger;
  for (int step = 0; step < 50'000; ++step) {
    if (!ledger.empty() && random.Uniform(100) < 48) {
      const auto [at, bytes] = ledger.TakeAny(random);
      t.heap.Free(at, bytes);
    } else {
      const uint64_t limit = uint64_t{64} << random.Uniform(13);
      const uint64_t bytes = RoundUpItemSize(random.Between(32, limit));
      const auto at = t.heap.Allocate(bytes);
      if (!at) continue;
      REQUIRE(ToBytes(*at) % kLocationUnitBytes == 0);
      REQUIRE(ledger.Add(*at, bytes));
    }
    if (step % 2000 == 0) {
      KVD_REQUIRE_OK(t.heap.CheckInvariants());
      KVD_REQUIRE_OK(t.pages.CheckInvariants());
    }
  }
  size_t objects = 0;
  t.heap.ForEachObject([&](RegionOffset, uint64_t) { ++objects; });
  REQUIRE(objects == ledger.size());
  while (!ledger.empty()) {
    const auto [at, bytes] = ledger.TakeAny(random);
    t.heap.Free(at, bytes);
  }
  KVD_REQUIRE_OK(t.heap.CheckInvariants());
  REQUIRE(t.heap.held_bytes() <= 32 * kPageBytes);
  REQUIRE(t.pages.free_bytes() == all - t.heap.held_bytes());
}

// What churn leaves usable, stated: with a quarter of the memory held by small objects that survive
// a random churn of 64 bytes against 4 MiB, at least three quarters of what is free can still be
// had in pieces of 4 MiB.
TEST_CASE(
    "Heap: churn of 64 bytes and 4 MiB leaves three quarters of the free memory usable for 4 MiB") {
  Random random(test::Seed());
  HeapUnderTest t;
  constexpr uint64_t kSmall = 64;
  constexpr uint64_t kLarge = 4 * kMiB;
  Ledger small;
  std::vector<RegionOffset> large;
  for (int step = 0; step < 400'000; ++step) {
    if (random.OneIn(500)) {
      if (!large.empty() && random.OneIn(2)) {
        const size_t i = random.Uniform(large.size());
        t.heap.Free(large[i], kLarge);
        large.erase(large.begin() + static_cast<ptrdiff_t>(i));
      } else if (const auto at = t.heap.Allocate(kLarge)) {
        large.push_back(*at);
      }
    } else if (small.size() * kSmall > kRegionBytes / 4 ||
               (!small.empty() && random.Uniform(100) < 20)) {
      const auto [at, bytes] = small.TakeAny(random);
      t.heap.Free(at, bytes);
    } else if (const auto at = t.heap.Allocate(kSmall)) {
      REQUIRE(small.Add(*at, kSmall));
    }
    if (step % 10'000 == 0) KVD_REQUIRE_OK(t.heap.CheckInvariants());
  }
  for (const RegionOffset at : large) t.heap.Free(at, kLarge);
  const uint64_t free = t.pages.free_bytes();
  uint64_t usable = 0;
  while (t.heap.Allocate(kLarge)) usable += kLarge;
  INFO("usable for 4 MiB: " << usable << " of " << free << " free");
  REQUIRE(usable * 4 >= free / kLarge * kLarge * 3);
}

}  // namespace
}  // namespace kvd
