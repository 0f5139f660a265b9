#include "server/store/bucket_chain.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "common/base/random.h"
#include "common/base/units.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

constexpr RegionOffset kPlace{1 * kMiB};
constexpr uint32_t kDepth = 7;

Slot SlotOf(uint64_t number) {
  return PackSlot(static_cast<uint32_t>(number % 4096), 64, RegionOffset{4 * kMiB + number * 64});
}

class ChainTest {
 public:
  ChainTest()
      : region_(*Region::Create(
            {.memory_bytes = 8 * kMiB, .hugepages = HugepagePolicy::kOff, .progress = {}})) {
    chain_.Rewrite(kDepth, {}, {});
  }

 protected:
  const BucketHeader& Header(RegionOffset at) const {
    return *reinterpret_cast<const BucketHeader*>(region_->At(at));
  }
  uint32_t Version() const { return Header(kPlace).version; }

  // Memory for overflow headers, used again when it comes back, newest first.
  RegionOffset TakeMemory() {
    if (free_.empty()) return next_ = next_ + kBucketHeaderBytes;
    const RegionOffset at = free_.back();
    free_.pop_back();
    return at;
  }

  void Insert(Slot slot) {
    std::optional<RegionOffset> spare;
    if (chain_.full()) spare = TakeMemory();
    const uint32_t before = Version();
    chain_.Insert(slot, spare);
    REQUIRE(Version() != before);
  }

  void Remove(Slot slot) {
    const uint32_t before = Version();
    const auto place = PlaceOf(slot);
    REQUIRE(place.has_value());
    if (const auto unlinked = chain_.Remove(*place)) free_.push_back(*unlinked);
    REQUIRE(Version() != before);
  }

  std::optional<SlotPlace> PlaceOf(Slot wanted) const {
    std::optional<SlotPlace> found;
    chain_.AnyOf([&](SlotPlace place, Slot slot) {
      if (slot == wanted) found = place;
      return slot == wanted;
    });
    return found;
  }

  std::multiset<Slot> Slots() const {
    std::multiset<Slot> slots;
    chain_.AnyOf([&](SlotPlace, Slot slot) {
      slots.insert(slot);
      return false;
    });
    return slots;
  }

  std::vector<RegionOffset> Overflow() const {
    std::vector<RegionOffset> headers;
    chain_.ForEachOverflow([&](RegionOffset header) { headers.push_back(header); });
    return headers;
  }

  uint64_t FilterOfChain() const {
    uint64_t filter = 0;
    chain_.AnyOf([&](SlotPlace place, Slot slot) {
      if (place.header != kPlace) filter |= uint64_t{1} << TagOf(slot) % 16;
      return false;
    });
    return filter;
  }

  bool AllVerify() const {
    const std::vector<RegionOffset> overflow = Overflow();
    return chain_.Verifies(kPlace) && chain_.depth() == kDepth &&
           std::all_of(overflow.begin(), overflow.end(),
                       [&](RegionOffset at) { return chain_.Verifies(at); }) &&
           chain_.filter() == FilterOfChain();
  }

  std::unique_ptr<Region> region_;
  BucketChain chain_{*region_, 2, BucketIndex{77}, kPlace};
  std::vector<RegionOffset> free_;
  RegionOffset next_{2 * kMiB};
};

TEST_CASE_METHOD(ChainTest, "BucketChain: an empty bucket verifies and has its depth") {
  REQUIRE(AllVerify());
  REQUIRE(Slots().empty());
  REQUIRE_FALSE(chain_.full());
}

TEST_CASE_METHOD(ChainTest, "BucketChain: a header verifies for its own bucket and shard only") {
  REQUIRE(BucketChain(*region_, 2, BucketIndex{77}, kPlace).Verifies(kPlace));
  REQUIRE_FALSE(BucketChain(*region_, 2, BucketIndex{78}, kPlace).Verifies(kPlace));
  REQUIRE_FALSE(BucketChain(*region_, 1, BucketIndex{77}, kPlace).Verifies(kPlace));
}

TEST_CASE_METHOD(ChainTest, "BucketChain: insert into a full bucket chains an overflow header") {
  for (uint64_t i = 0; i < kSlotsPerHeader; ++i) Insert(SlotOf(i));
  REQUIRE(Overflow().empty());
  REQUIRE(chain_.full());
  Insert(SlotOf(kSlotsPerHeader));
  REQUIRE(Overflow().size() == 1);
  REQUIRE_FALSE(chain_.full());
  REQUIRE(AllVerify());
  for (uint64_t i = kSlotsPerHeader + 1; i < 2 * kSlotsPerHeader; ++i) Insert(SlotOf(i));
  REQUIRE(chain_.full());
  Insert(SlotOf(2 * kSlotsPerHeader));
  REQUIRE(Overflow().size() == 2);
  REQUIRE(Slots().size() == 2 * kSlotsPerHeader + 1);
  REQUIRE(AllVerify());
}

TEST_CASE_METHOD(
    ChainTest, "BucketChain: delete from the bucket pulls a slot out of the chain, which shrinks") {
  for (uint64_t i = 0; i < kSlotsPerHeader + 2; ++i) Insert(SlotOf(i));
  Remove(SlotOf(3));
  REQUIRE(Overflow().size() == 1);
  REQUIRE(PlaceOf(SlotOf(kSlotsPerHeader + 1))->header == kPlace);
  Remove(SlotOf(4));
  REQUIRE(Overflow().empty());
  REQUIRE(free_.size() == 1);
  REQUIRE(Slots().size() == kSlotsPerHeader);
  REQUIRE(AllVerify());
}

TEST_CASE_METHOD(ChainTest, "BucketChain: delete from the chain unlinks a header that runs empty") {
  for (uint64_t i = 0; i <= kSlotsPerHeader; ++i) Insert(SlotOf(i));
  Remove(SlotOf(kSlotsPerHeader));
  REQUIRE(Overflow().empty());
  REQUIRE(free_.size() == 1);
  REQUIRE(Slots().size() == kSlotsPerHeader);
}

TEST_CASE_METHOD(ChainTest, "BucketChain: a hole far back in the chain is filled from its front") {
  for (uint64_t i = 0; i < 34; ++i) Insert(SlotOf(i));
  REQUIRE(Overflow().size() == 2);
  const RegionOffset back = Overflow()[1];
  REQUIRE(PlaceOf(SlotOf(20))->header == back);
  Remove(SlotOf(20));
  REQUIRE(PlaceOf(SlotOf(33))->header == back);
  REQUIRE(Overflow().size() == 2);
  Remove(SlotOf(21));
  REQUIRE(Overflow() == std::vector<RegionOffset>{back});
  REQUIRE(AllVerify());
}

TEST_CASE_METHOD(ChainTest,
                 "BucketChain: a slot replaced in the chain changes the bucket's version") {
  for (uint64_t i = 0; i < 20; ++i) Insert(SlotOf(i));
  for (const uint64_t number : {2, 17}) {
    const uint32_t before = Version();
    chain_.Replace(*PlaceOf(SlotOf(number)), SlotOf(number + 100));
    REQUIRE(Version() != before);
    REQUIRE(AllVerify());
    REQUIRE(Slots().count(SlotOf(number + 100)) == 1);
    REQUIRE(Slots().count(SlotOf(number)) == 0);
  }
}

TEST_CASE_METHOD(ChainTest, "BucketChain: slots are found by their tag, also by tag zero") {
  for (uint64_t i = 0; i < 20; ++i) Insert(SlotOf(i));
  Insert(SlotOf(4096));  // tag 0 once more
  std::set<Slot> found;
  chain_.AnyWithTag(0, [&](SlotPlace, Slot slot) {
    found.insert(slot);
    return false;
  });
  REQUIRE(found == std::set<Slot>{SlotOf(0), SlotOf(4096)});
  REQUIRE(chain_.AnyWithTag(19, [&](SlotPlace, Slot slot) { return slot == SlotOf(19); }));
  REQUIRE_FALSE(chain_.AnyWithTag(21, [&](SlotPlace, Slot) { return true; }));
}

TEST_CASE_METHOD(ChainTest,
                 "BucketChain: after each change up to four overflow headers have its version") {
  const auto same_versions = [&] {
    const std::vector<RegionOffset> overflow = Overflow();
    for (size_t i = 0; i < std::min<size_t>(overflow.size(), 4); ++i) {
      if (Header(overflow[i]).version != Version()) return false;
    }
    return true;
  };
  for (uint64_t i = 0; i < 6 * kSlotsPerHeader; ++i) {
    Insert(SlotOf(i));
    REQUIRE(same_versions());
  }
  for (const uint64_t number : {1, 20, 40, 90}) {
    chain_.Replace(*PlaceOf(SlotOf(number)), SlotOf(number + 1000));
    REQUIRE(same_versions());
  }
  for (const uint64_t number : {0, 19, 41, 91, 90 + 1000}) {
    Remove(SlotOf(number));
    REQUIRE(same_versions());
    REQUIRE(AllVerify());
  }
}

TEST_CASE_METHOD(ChainTest, "BucketChain: a slot is found whatever bit of the filter is its own") {
  for (uint64_t i = 0; i < kSlotsPerHeader; ++i) Insert(SlotOf(i));
  for (uint64_t tag = 100; tag < 116; ++tag) {
    CHECK_FALSE(
        chain_.AnyWithTag(static_cast<uint32_t>(tag), [](SlotPlace, Slot) { return true; }));
    Insert(SlotOf(tag));
    CHECK(chain_.AnyWithTag(static_cast<uint32_t>(tag), [](SlotPlace, Slot) { return true; }));
    CHECK(chain_.filter() == uint64_t{1} << tag % 16);
    Remove(SlotOf(tag));
    CHECK(chain_.filter() == 0);
  }
}

TEST_CASE_METHOD(ChainTest, "BucketChain: a rewrite replaces bucket and chain") {
  for (uint64_t i = 0; i < 20; ++i) Insert(SlotOf(i));
  for (const size_t count : {0u, 1u, 16u, 17u, 32u, 33u, 60u}) {
    std::vector<Slot> slots;
    for (size_t i = 0; i < count; ++i) slots.push_back(SlotOf(1000 + i));
    std::vector<RegionOffset> overflow;
    for (size_t i = 0; i < BucketChain::OverflowNeeded(count); ++i)
      overflow.push_back(TakeMemory());
    chain_.Rewrite(kDepth, slots, overflow);
    REQUIRE(AllVerify());
    REQUIRE(Slots() == std::multiset<Slot>(slots.begin(), slots.end()));
    REQUIRE(Overflow().size() == overflow.size());
  }
}

TEST_CASE_METHOD(ChainTest,
                 "BucketChain: random use keeps every slot and holes only at the front") {
  Random random(test::Seed());
  std::set<Slot> expected;
  uint64_t next = 0;
  for (int step = 0; step < 20'000; ++step) {
    const bool growing = (step / 500) % 2 == 0;
    if (expected.empty() || random.Uniform(100) < (growing ? 60 : 40)) {
      expected.insert(SlotOf(next));
      Insert(SlotOf(next++ % 60'000));
    } else {
      const auto victim =
          std::next(expected.begin(), static_cast<ptrdiff_t>(random.Uniform(expected.size())));
      Remove(*victim);
      expected.erase(victim);
    }
    if (step % 100 != 0) continue;
    REQUIRE(AllVerify());
    REQUIRE(Slots() == std::multiset<Slot>(expected.begin(), expected.end()));
    REQUIRE(Overflow().size() == BucketChain::OverflowNeeded(expected.size()));
  }
}

}  // namespace
}  // namespace kvd
