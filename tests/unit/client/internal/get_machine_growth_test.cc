// The read path of one key while the table grows and shrinks: clients with an old idea of it find
// everything, and give up only where it cannot be.
#include <memory>
#include <string>
#include <vector>

#include "client/internal/get_machine.h"
#include "common/base/random.h"
#include "common/layout/checked_word.h"
#include "tests/support/test.h"
#include "tests/unit/client/internal/machine_driver.h"
#include "tests/unit/client/internal/test_region.h"

namespace kvd::test {
namespace {

using Need = GetMachine::Need;

constexpr uint64_t kIncarnation = 0x1234567890abcdef;
constexpr BucketIndex kBucket0{0};

}  // namespace

TEST_CASE(
    "GetMachine: a client with an old bucket count is led to the key by the buckets' depths") {
  // Every stage of growth, from a client that knows one bucket, and the map it has learned then.
  TestRegion region(kIncarnation);
  const int items = 60;
  for (int i = 0; i < items; ++i)
    region.Put({.key = "key" + std::to_string(i), .value = std::to_string(i)});
  const bool publish = GENERATE(true, false);
  for (int splits = 1; splits <= 20; ++splits) {
    region.Split(0, publish);
    CAPTURE(splits, publish);
    for (int i = 0; i < items; ++i) {
      MachineDriver driver(region);
      driver.Warm();
      const std::string key = "key" + std::to_string(i);
      REQUIRE(driver.Get(key) == Need::kFound);
      REQUIRE(driver.machine().item().value == std::to_string(i));
      REQUIRE(driver.machine().rounds() == 0);
      REQUIRE(driver.map().bucket_count(0) <= region.bucket_count(0));
    }
    MachineDriver driver(region);
    for (int i = 0; i < 50; ++i) {
      REQUIRE(driver.Get("absent" + std::to_string(i)) == Need::kAbsent);
      REQUIRE(driver.machine().rounds() == 0);
    }
  }
}

TEST_CASE(
    "GetMachine: with the count word one redirect is enough for many splits, and is remembered") {
  TestRegion region(kIncarnation);
  for (int i = 0; i < 99; ++i) region.Split(0);
  MachineDriver driver(region);
  const std::string key = region.KeyIn(0, BucketIndex{77}, 100, "key");
  region.Put({.key = key, .value = "v"}, true);
  REQUIRE(driver.Get(key) == Need::kFound);
  // Its first look at the table's size: no bucket was split meanwhile.
  CHECK(driver.machine().counters().redirects == 0);
  CHECK(driver.map().bucket_count(0) == 100);
  REQUIRE(driver.Get(key) == Need::kFound);
  CHECK(driver.reads().size() == 1);
  for (int i = 0; i < 99; ++i) region.Split(0);
  const std::string moved = region.KeyIn(0, BucketIndex{177}, 199, "key");
  region.Put({.key = moved, .value = "v"}, true);
  REQUIRE(driver.Get(moved) == Need::kFound);
  CHECK(driver.machine().counters().redirects == 1);
}

TEST_CASE("GetMachine: a key that a split moves between two reads is found or was there") {
  TestRegion region(kIncarnation);
  const std::string key = region.KeyIn(0, BucketIndex{1}, 2, "key");
  region.Put({.key = key, .value = "v"});
  const int split_before = GENERATE(1, 2);
  MachineDriver driver(region);
  driver.Warm();
  driver.before_read = [&](int number, const GetMachine::Read&) {
    if (number == split_before && region.bucket_count(0) == 1) region.Split(0);
  };
  REQUIRE(driver.Get(key) == Need::kFound);
  CHECK(driver.machine().item().value == "v");
}

TEST_CASE(
    "GetMachine: a client with an old bucket count is led down to where merges took the key") {
  TestRegion region(kIncarnation);
  const int items = 60;
  for (int i = 0; i < 40; ++i) region.Split(0);
  for (int i = 0; i < items; ++i) {
    region.Put({.key = "key" + std::to_string(i), .value = std::to_string(i)});
  }
  std::vector<std::unique_ptr<MachineDriver>> drivers;
  for (int i = 0; i < items; ++i) {  // each knows the table at its largest
    drivers.push_back(std::make_unique<MachineDriver>(region));
    REQUIRE(drivers.back()->Get("key" + std::to_string(i)) == Need::kFound);
  }
  const int merges = GENERATE(1, 2, 7, 20, 40);
  for (int i = 0; i < merges; ++i) region.Merge(0);
  CAPTURE(merges);
  for (int i = 0; i < items; ++i) {
    MachineDriver& driver = *drivers[static_cast<size_t>(i)];
    driver.map().LearnBucketCount(0, 41);
    const std::string key = "key" + std::to_string(i);
    REQUIRE(driver.Get(key) == Need::kFound);
    REQUIRE(driver.machine().item().value == std::to_string(i));
    REQUIRE(driver.machine().rounds() == 0);
    REQUIRE(driver.machine().counters().redirects <= 2);
    const std::string absent = region.KeyIn(0, BucketIndex{40}, 41, "absent");
    driver.map().LearnBucketCount(0, 41);
    REQUIRE(driver.Get(absent) == Need::kAbsent);
    REQUIRE(driver.map().bucket_count(0) == region.bucket_count(0));
  }
}

TEST_CASE("GetMachine: a segment that was given back is forgotten, whatever lies there now") {
  TestRegion region(kIncarnation);
  const uint32_t per_segment = region.geometry().buckets_per_segment();
  while (region.bucket_count(0) < per_segment + 10) region.Split(0);
  const std::string key = region.KeyIn(0, BucketIndex{per_segment + 3}, per_segment + 10, "key");
  const std::string absent =
      region.KeyIn(0, BucketIndex{per_segment + 3}, per_segment + 10, "absent");
  region.Put({.key = key, .value = "v"});
  MachineDriver driver(region, GENERATE(true, false));
  REQUIRE(driver.Get(key) == Need::kFound);
  while (region.bucket_count(0) > per_segment) region.Merge(0);
  const RegionOffset old = region.GiveBackSegment(0);
  Random random(Seed());
  SECTION("the headers that were left") {}
  SECTION("zeroes") { std::memset(region.At(old), 0, kSegmentBytes); }
  SECTION("ones") { std::memset(region.At(old), 0xff, kSegmentBytes); }
  SECTION("noise") {
    for (uint64_t at = 0; at < kSegmentBytes; at += 8) {
      const uint64_t word = random.Next();
      std::memcpy(region.At(old + at), &word, sizeof(word));
    }
  }
  SECTION("slots of this tag that claim large items") {
    const Slot slot = PackSlot(SlotTag(region.Hash(key)), 500'000, RegionOffset{1 << 20});
    for (uint64_t at = 0; at < kSegmentBytes; at += 8) {
      std::memcpy(region.At(old + at), &slot, sizeof(slot));
    }
  }
  SECTION("and the table has grown again, elsewhere") {
    while (region.bucket_count(0) < per_segment + 10) region.Split(0);
    REQUIRE(region.BucketOffset(0, BucketIndex{per_segment}) != old);
  }
  REQUIRE(driver.Get(key) == Need::kFound);
  CHECK(driver.reads().size() <= 8);
  for (const GetMachine::Read& read : driver.reads()) CHECK(read.length <= 2048);
  REQUIRE(driver.Get(key) == Need::kFound);
  CHECK(driver.reads().size() <= 2);
  driver.map().LearnBucketCount(0, per_segment + 10);
  driver.map().LearnSegment(1, static_cast<uint32_t>(ToBytes(old) / kSegmentBytes));
  REQUIRE(driver.Get(absent) == Need::kAbsent);
  CHECK(driver.bad_reads() == 0);
}

TEST_CASE("GetMachine: a key that a merge moves between two reads is found or was there") {
  TestRegion region(kIncarnation);
  region.Split(0);
  const std::string key = region.KeyIn(0, BucketIndex{1}, 2, "key");
  region.Put({.key = key, .value = "v"});
  const int merge_before = GENERATE(1, 2, 3, 4);
  MachineDriver driver(region);
  driver.before_read = [&](int number, const GetMachine::Read&) {
    if (number == merge_before && region.bucket_count(0) == 2) region.Merge(0);
  };
  REQUIRE(driver.Get(key) == Need::kFound);
  CHECK(driver.machine().item().value == "v");
  REQUIRE(driver.Get(region.KeyIn(0, BucketIndex{1}, 2, "absent")) == Need::kAbsent);
}

TEST_CASE("GetMachine: a depth that leads beyond the directory ends at the server") {
  TestRegion region(kIncarnation);
  MachineDriver driver(region);
  driver.Warm();
  BucketHeader& header = region.HeaderAt(region.BucketOffset(0, kBucket0));
  const uint32_t depth = GENERATE(20u, 31u, 32u, 33u, 255u);
  header.link = PackLink(depth, RegionOffset{0});
  region.Seal(0, kBucket0, RegionOffset{0});
  const std::string key = [&] {
    for (;;) {  // agrees with bucket 0 for as long as the directory has room
      std::string candidate = region.KeyIn(0, kBucket0, 1 << 12, "key");
      if (LowBits(region.Hash(candidate), 20) != 0) return candidate;
    }
  }();
  CHECK(driver.Get(key) == Need::kAskServer);
  CHECK(driver.bad_reads() == 0);
  CHECK(driver.map().bucket_count(0) == 1);
}

TEST_CASE("GetMachine: buckets that redirect for ever end at the server") {
  TestRegion region(kIncarnation);
  // No bucket but 0 has been made, yet each claims to have been split.
  for (int i = 0; i < 3000; ++i) region.Split(0);
  for (uint32_t bucket = 0; bucket < 3001; ++bucket) {
    region.HeaderAt(region.BucketOffset(0, BucketIndex{bucket})).link =
        PackLink(32, RegionOffset{0});
    region.Seal(0, BucketIndex{bucket}, RegionOffset{0});
  }
  MachineDriver driver(region);
  Random random(Seed());
  for (int i = 0; i < 100; ++i) {
    const Need need = driver.Get("key" + std::to_string(random.Next()));
    CHECK((need == Need::kAskServer || need == Need::kAbsent));
    CHECK(driver.reads().size() <= 2 * GetMachine::kRedirectsMax + 10);
    CHECK(driver.bad_reads() == 0);
  }
}

TEST_CASE("GetMachine: a directory entry that is not there yet is read again") {
  TestRegion region(kIncarnation);
  region.Put({.key = "apple", .value = "red"}, true);
  std::byte* const entry = region.At(RegionOffset{region.geometry().directory_offset});
  uint64_t word;
  std::memcpy(&word, entry, sizeof(word));
  MachineDriver driver(region);
  SECTION("it comes") {
    std::memset(entry, 0, sizeof(word));
    driver.before_read = [&](int number, const GetMachine::Read&) {
      if (number == 3) std::memcpy(entry, &word, sizeof(word));
    };
    REQUIRE(driver.Get("apple") == Need::kFound);
    CHECK(driver.machine().rounds() == 1);
  }
  SECTION("it never comes") {
    std::memset(entry, 0, sizeof(word));
    CHECK(driver.Get("apple") == Need::kAskServer);
    // Each time the count is read as well: the bucket might be gone.
    CHECK(driver.reads().size() == 2 * GetMachine::kRoundsMax + 1);
  }
  SECTION("it points outside the region") {
    word = PackCheckedWord(CheckedWordKind::kDirectoryEntry, 0, kIncarnation, 8);
    std::memcpy(entry, &word, sizeof(word));
    CHECK(driver.Get("apple") == Need::kAskServer);
    CHECK(driver.bad_reads() == 0);
  }
  SECTION("it is of another incarnation") {
    word = PackCheckedWord(CheckedWordKind::kDirectoryEntry, 0, kIncarnation + 1, 1);
    std::memcpy(entry, &word, sizeof(word));
    CHECK(driver.Get("apple") == Need::kAskServer);
  }
}

}  // namespace kvd::test
