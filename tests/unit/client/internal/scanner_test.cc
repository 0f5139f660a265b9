// A scan meets every key that is there all the time, whatever happens to the region meanwhile.
#include "client/internal/scanner.h"

#include <limits>
#include <map>
#include <set>
#include <string>

#include "common/base/random.h"
#include "common/layout/superblock.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/internal/fake_channel.h"

namespace kvd::test {
namespace {

using Catch::Matchers::Contains;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr BucketIndex kBucket0{0};

struct Fixture {
  explicit Fixture(bool mapped = false, uint32_t shards = 1)
      : region(7, shards),
        channel(region, mapped),
        queue(channel),
        reader(channel, queue),
        map(region.geometry(), 1 << 20) {}

  absl::Status Scan(int64_t deadline_ns = kNever) {
    met.clear();
    Scanner scanner(map, reader, deadline_ns);
    position = ScanPosition{};
    return scanner.Run(position, 0, [this](const ItemView& item) {
      met.insert({std::string(item.key), std::string(item.value)});
      return stop_after == 0 || met.size() < stop_after ? Scanner::Answer::kNext
                                                        : Scanner::Answer::kStop;
    });
  }

  std::set<std::string> MetKeys() const {
    std::set<std::string> keys;
    for (const auto& [key, value] : met) keys.insert(key);
    return keys;
  }

  TestRegion region;
  FakeChannel channel;
  ReadQueue queue;
  RegionReader reader;
  RegionMap map;
  std::multimap<std::string, std::string> met;
  size_t stop_after = 0;
  ScanPosition position;
};

TEST_CASE("Scanner: in parts, with the cursor as text between them, it meets everything too") {
  Fixture fixture(GENERATE(true, false), 3);
  std::set<std::string> expected;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "key" + std::to_string(i);
    expected.insert(key);
    fixture.region.Put({.key = key, .value = "v"});
    if (i % 20 == 0) fixture.region.Split(static_cast<uint32_t>(i) % 3);
  }
  const uint64_t incarnation = fixture.region.geometry().incarnation;
  std::set<std::string> met;
  std::string cursor;
  int parts = 0;
  do {
    ScanPosition position = ParseCursor(cursor, incarnation).value();
    Scanner scanner(fixture.map, fixture.reader, kNever);
    uint64_t visited = 0;
    KVD_REQUIRE_OK(scanner.Run(position, 10, [&](const ItemView& item) {
      met.insert(std::string(item.key));
      ++visited;
      return Scanner::Answer::kNext;
    }));
    cursor = FormatCursor(position, incarnation);
    CHECK((visited >= 10 || cursor.empty()));
    if (++parts % 5 == 0) fixture.region.Split(static_cast<uint32_t>(parts) % 3);
  } while (!cursor.empty());
  CHECK(met == expected);
  CHECK(parts > 5);
}

TEST_CASE("Scanner: a cursor that is none, or of another incarnation, is refused") {
  const ScanPosition position{.shard = 2, .order = 0xfedcba98};
  const std::string cursor = FormatCursor(position, 42);
  const auto parsed = ParseCursor(cursor, 42);
  KVD_REQUIRE_OK(parsed);
  CHECK(parsed->shard == 2);
  CHECK(parsed->order == 0xfedcba98);
  KVD_REQUIRE_CODE(ParseCursor(cursor, 43), kFailedPrecondition);
  for (const char* bad : {"x", "1-2", "0-0-0-0-0", "g-0-0", "0-0-123456789", "0-123456789-0"}) {
    KVD_REQUIRE_CODE(ParseCursor(bad, 42), kInvalidArgument);
  }
  // As clients before protocol version 2 wrote them: shard, bucket, and one more.
  const absl::Status old = ParseCursor("000000000000002a-2-4d-64", 42).status();
  KVD_REQUIRE_CODE(old, kFailedPrecondition);
  CHECK_THAT(MessageOf(old), Contains("older client"));
}

TEST_CASE("Scanner: meets each item of all shards, buckets and chains once") {
  Fixture fixture(GENERATE(true, false), 3);
  std::multimap<std::string, std::string> expected;
  for (int i = 0; i < 300; ++i) {
    const std::string key = "key" + std::to_string(i);
    expected.insert({key, std::to_string(i)});
    fixture.region.Put({.key = key, .value = std::to_string(i)});
    if (i % 20 == 0) fixture.region.Split(static_cast<uint32_t>(i) % 3);
  }
  KVD_REQUIRE_OK(fixture.Scan());
  CHECK(fixture.met == expected);
  KVD_REQUIRE_OK(fixture.Scan());
  CHECK(fixture.met == expected);
}

TEST_CASE("Scanner: an empty store") {
  Fixture fixture;
  KVD_REQUIRE_OK(fixture.Scan());
  CHECK(fixture.met.empty());
}

TEST_CASE("Scanner: the visitor can stop it") {
  Fixture fixture;
  for (int i = 0; i < 30; ++i) fixture.region.Put({.key = "key" + std::to_string(i), .value = ""});
  fixture.stop_after = 7;
  KVD_REQUIRE_OK(fixture.Scan());
  CHECK(fixture.met.size() == 7);
}

TEST_CASE("Scanner: a split between any two reads loses no key") {
  // The count word is published late, so that only the depth of the old bucket tells of the new
  // one.
  const bool publish = GENERATE(true, false);
  for (int split_at = 1; split_at <= 60; ++split_at) {
    Fixture fixture;
    std::set<std::string> keys;
    for (int i = 0; i < 25; ++i) {
      keys.insert("key" + std::to_string(i));
      fixture.region.Put({.key = "key" + std::to_string(i), .value = "v"});
    }
    fixture.channel.before_read = [&](int number, const ReadOp&) {
      if (number == split_at) fixture.region.Split(0, publish);
    };
    CAPTURE(publish, split_at);
    KVD_REQUIRE_OK(fixture.Scan());
    REQUIRE(fixture.MetKeys() == keys);
  }
}

TEST_CASE("Scanner: a table that grows all the time loses no key") {
  Fixture fixture;
  std::set<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    keys.insert("key" + std::to_string(i));
    fixture.region.Put({.key = "key" + std::to_string(i), .value = "v"});
  }
  fixture.channel.before_read = [&](int number, const ReadOp&) {
    if (number % 5 == 0 && fixture.region.bucket_count(0) < 64)
      fixture.region.Split(0, number % 2 == 0);
  };
  KVD_REQUIRE_OK(fixture.Scan());
  CHECK(fixture.MetKeys() == keys);
}

TEST_CASE("Scanner: a merge between any two reads loses no key, and none comes twice") {
  for (int merge_at = 1; merge_at <= 120; ++merge_at) {
    Fixture fixture(false, 1);
    for (int i = 0; i < 6; ++i) fixture.region.Split(0);
    std::set<std::string> keys;
    for (int i = 0; i < 25; ++i) {
      keys.insert("key" + std::to_string(i));
      fixture.region.Put({.key = "key" + std::to_string(i), .value = "v"});
    }
    fixture.channel.before_read = [&](int number, const ReadOp&) {
      if (number >= merge_at && number % 3 == 0 && fixture.region.bucket_count(0) > 1) {
        fixture.region.Merge(0);
      }
    };
    CAPTURE(merge_at);
    KVD_REQUIRE_OK(fixture.Scan());
    REQUIRE(fixture.MetKeys() == keys);
    REQUIRE(fixture.met.size() == keys.size());
  }
}

TEST_CASE("Scanner: in parts, a table that grows and shrinks all the time loses no key") {
  INFO("seed " << Seed());
  for (int run = 0; run < 20; ++run) {
    Random random(Seed() + static_cast<uint64_t>(run));
    Fixture fixture(random.OneIn(2));
    std::set<std::string> keys;
    for (int i = 0; i < 100; ++i) {
      keys.insert("key" + std::to_string(i));
      fixture.region.Put({.key = "key" + std::to_string(i), .value = "v"});
    }
    // The map is that of a client that has seen the table at its largest.
    for (int i = 0; i < 60; ++i) fixture.region.Split(0);
    KVD_REQUIRE_OK(fixture.Scan());
    fixture.channel.before_read = [&](int, const ReadOp&) {
      if (random.OneIn(4)) fixture.region.Merge(0);
      if (random.OneIn(4)) fixture.region.Split(0, random.OneIn(2));
      while (fixture.region.bucket_count(0) > 60) fixture.region.Merge(0);
      while (fixture.region.bucket_count(0) < 3) fixture.region.Split(0);
    };
    std::set<std::string> met;
    std::string cursor;
    do {
      ScanPosition position = ParseCursor(cursor, 7).value();
      Scanner scanner(fixture.map, fixture.reader, kNever);
      KVD_REQUIRE_OK(scanner.Run(position, 10, [&](const ItemView& item) {
        met.insert(std::string(item.key));
        return Scanner::Answer::kNext;
      }));
      cursor = FormatCursor(position, 7);
      for (int i = static_cast<int>(random.Uniform(30)); i > 0; --i) {
        if (fixture.region.bucket_count(0) > 3) fixture.region.Merge(0);
      }
      for (int i = static_cast<int>(random.Uniform(30)); i > 0; --i) fixture.region.Split(0);
    } while (!cursor.empty());
    REQUIRE(met == keys);
  }
}

TEST_CASE("Scanner: what lies in memory that another item got is not taken for the bucket's own") {
  // The item goes between header and item, and one of another bucket comes to lie in its place.
  Fixture fixture;
  fixture.region.Split(0);
  fixture.region.reuse_memory = true;
  const std::string moved = fixture.region.KeyIn(0, kBucket0, 2, "moved");
  const std::string other = fixture.region.KeyIn(0, BucketIndex{1}, 2, "other");
  const Slot slot = fixture.region.Put({.key = moved, .value = std::string(100, 'a')});
  fixture.channel.before_read = [&](int, const ReadOp& op) {
    if (ToBytes(op.offset) != ToBytes(LocationOf(slot)) || fixture.region.reuse_memory == false)
      return;
    fixture.region.Replace(slot, {.key = moved, .value = "b"});
    const size_t rest = moved.size() + 100 - other.size();
    fixture.region.Put({.key = other, .value = std::string(rest, 'c')});
    fixture.region.reuse_memory = false;
  };
  KVD_REQUIRE_OK(fixture.Scan());
  CHECK(fixture.region.reuse_memory == false);
  CHECK(fixture.MetKeys() == std::set<std::string>{moved, other});
  CHECK(fixture.met.size() == 2);
}

TEST_CASE(
    "Scanner: items replaced and moved along a chain meanwhile are met in one of their versions") {
  INFO("seed " << Seed());
  for (int run = 0; run < 20; ++run) {
    Random random(Seed() + static_cast<uint64_t>(run));
    Fixture fixture;
    std::map<std::string, Slot> slots;
    for (int i = 0; i < 40; ++i) {
      const std::string key = "key" + std::to_string(i);
      slots[key] = fixture.region.Put({.key = key, .value = "0"});
    }
    fixture.channel.before_read = [&](int number, const ReadOp&) {
      if (number > 400 || !random.OneIn(3)) return;
      auto& [key, slot] =
          *std::next(slots.begin(), static_cast<ptrdiff_t>(random.Uniform(slots.size())));
      slot = fixture.region.Replace(slot, {.key = key, .value = std::to_string(number)});
    };
    KVD_REQUIRE_OK(fixture.Scan());
    CHECK(fixture.MetKeys().size() == slots.size());
  }
}

TEST_CASE("Scanner: deleted items are not met, nor what lies in their memory") {
  Fixture fixture;
  const Slot slot = fixture.region.Put({.key = "deleted", .value = "v"});
  fixture.region.Put({.key = "kept", .value = "v"});
  fixture.region.Delete("deleted", slot);
  KVD_REQUIRE_OK(fixture.Scan());
  CHECK(fixture.MetKeys() == std::set<std::string>{"kept"});
}

TEST_CASE("Scanner: a bucket that never comes to rest ends with the deadline") {
  Fixture fixture;
  const Slot slot = fixture.region.Put({.key = "key", .value = "v"});
  SECTION("an item is being written") { fixture.region.SetState(slot, ItemState::kWriting); }
  SECTION("an item is torn") { *fixture.region.At(LocationOf(slot) + 18) ^= std::byte{1}; }
  SECTION("the header is torn") {
    fixture.region.HeaderAt(fixture.region.BucketOffset(0, kBucket0)).checksum ^= 1;
  }
  SECTION("a slot points outside") {
    fixture.region.AddSlot(0, kBucket0, PackSlot(1, 64, RegionOffset{TestRegion::kRegionBytes}));
  }
  SECTION("the directory entry is missing") { fixture.region.SetDirectoryEntry(0, 0); }
  SECTION("the count word is missing") {
    std::memset(fixture.region.At(kBucketCountsOffset), 0, 8);
  }
  KVD_REQUIRE_CODE(fixture.Scan(0), kDeadlineExceeded);
}

TEST_CASE("Scanner: a chain without an end is DataLoss, not a scan that lacks items") {
  Fixture fixture;
  const RegionOffset overflow = fixture.region.AddOverflow(0, kBucket0);
  fixture.region.HeaderAt(overflow).link = PackLink(0, overflow);
  fixture.region.Seal(0, kBucket0, overflow);
  const absl::Status status = fixture.Scan();
  KVD_REQUIRE_CODE(status, kDataLoss);
  CHECK_THAT(MessageOf(status), Contains("chain"));
}

TEST_CASE("Scanner: a depth beyond the directory is DataLoss") {
  Fixture fixture;
  fixture.region.HeaderAt(fixture.region.BucketOffset(0, kBucket0)).link =
      PackLink(30, RegionOffset{0});
  fixture.region.Seal(0, kBucket0, RegionOffset{0});
  // Buckets that were never made are torn for ever, so the deadline may come first.
  const absl::Status status = fixture.Scan(0);
  CHECK_FALSE(status.ok());
}

TEST_CASE("Scanner: the server's death ends it") {
  Fixture fixture(true);
  fixture.region.Put({.key = "key", .value = "v"});
  SECTION("before an item") {}
  SECTION("in an empty store") {
    fixture.region.Delete("key", fixture.region.SlotsOf(0, kBucket0)[0]);
  }
  fixture.region.SetLifeline(kLifelineOwnerDied);
  KVD_REQUIRE_CODE(fixture.Scan(), kUnavailable);
  CHECK(fixture.met.empty());
}

}  // namespace
}  // namespace kvd::test
