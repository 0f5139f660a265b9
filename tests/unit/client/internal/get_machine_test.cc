// The read path of one key against a region in every state: what it returns is right, and it takes
// no more reads than design allows.
#include "client/internal/get_machine.h"

#include <string>
#include <vector>

#include "tests/support/test.h"
#include "tests/unit/client/internal/machine_driver.h"
#include "tests/unit/client/internal/test_region.h"

namespace kvd::test {
namespace {

using Need = GetMachine::Need;

constexpr uint64_t kIncarnation = 0x1234567890abcdef;
constexpr BucketIndex kBucket0{0};

TEST_CASE("GetMachine: an item in its bucket's local space takes one read") {
  TestRegion region(kIncarnation);
  region.Put({.key = "apple", .value = "red"}, true);
  region.Put({.key = "pear", .value = "green"}, true);
  MachineDriver driver(region);
  driver.Warm();
  REQUIRE(driver.Get("pear") == Need::kFound);
  CHECK(driver.machine().item().value == "green");
  CHECK(driver.machine().item().key == "pear");
  CHECK(driver.reads().size() == 1);
  CHECK(driver.reads()[0].length == TestRegion::kBucketBytes);
  CHECK(driver.reads()[0].into == GetMachine::Into::kBucket);
}

TEST_CASE("GetMachine: an item in the heap takes the bucket and one exact read") {
  TestRegion region(kIncarnation);
  const Slot slot = region.Put({.key = "apple", .value = std::string(3000, 'a')});
  MachineDriver driver(region);
  driver.Warm();
  REQUIRE(driver.Get("apple") == Need::kFound);
  CHECK(driver.machine().item().value == std::string(3000, 'a'));
  CHECK(driver.machine().slot() == slot);
  REQUIRE(driver.reads().size() == 2);
  CHECK(driver.reads()[1].offset == LocationOf(slot));
  CHECK(driver.reads()[1].length == ItemBytesOf(slot));
}

TEST_CASE("GetMachine: without whole buckets it reads the header and then exactly the item") {
  TestRegion region(kIncarnation);
  const Slot slot = region.Put({.key = "apple", .value = "red"}, true);
  MachineDriver driver(region, false);
  driver.Warm();
  REQUIRE(driver.Get("apple") == Need::kFound);
  REQUIRE(driver.reads().size() == 2);
  CHECK(driver.reads()[0].length == kBucketHeaderBytes);
  CHECK(driver.reads()[1].length == ItemBytesOf(slot));
}

TEST_CASE("GetMachine: the first GET also reads a piece of the directory") {
  TestRegion region(kIncarnation);
  region.Put({.key = "apple", .value = "red"}, true);
  MachineDriver driver(region);
  REQUIRE(driver.Get("apple") == Need::kFound);
  REQUIRE(driver.reads().size() == 2);
  CHECK(ToBytes(driver.reads()[0].offset) == region.geometry().directory_offset);
}

TEST_CASE("GetMachine: optional words come back with the item") {
  TestRegion region(kIncarnation);
  for (uint8_t flags = 0; flags <= kItemFlagsKnown; ++flags) {
    region.Put({.key = "key" + std::to_string(flags),
                .value = "v",
                .version = 5000u + flags,
                .flags = flags});
  }
  MachineDriver driver(region);
  for (uint8_t flags = 0; flags <= kItemFlagsKnown; ++flags) {
    REQUIRE(driver.Get("key" + std::to_string(flags)) == Need::kFound);
    const ItemView& item = driver.machine().item();
    CHECK(item.version == 5000u + flags);
    CHECK(item.value == "v");
    CHECK(item.expiry_unix_us == ((flags & kItemHasExpiry) != 0 ? (5000u + flags) * 7 : 0));
    CHECK(item.user_flags == ((flags & kItemHasUserFlags) != 0 ? 5000u + flags : 0));
  }
}

TEST_CASE("GetMachine: a clean miss takes one read") {
  TestRegion region(kIncarnation);
  region.Put({.key = "apple", .value = "red"}, true);
  MachineDriver driver(region);
  driver.Warm();
  const std::string absent = [&] {
    for (;;) {
      std::string key = region.KeyIn(0, kBucket0, 1, "absent");
      if (SlotTag(region.Hash(key)) != SlotTag(region.Hash("apple"))) return key;
    }
  }();
  CHECK(driver.Get(absent) == Need::kAbsent);
  CHECK(driver.reads().size() == 1);
  CHECK(driver.machine().counters().confirmations == 0);
}

TEST_CASE("GetMachine: a miss after a tag that matched by chance is confirmed") {
  TestRegion region(kIncarnation);
  const bool local = GENERATE(true, false);
  const std::string wanted = region.KeyIn(0, kBucket0, 1, "wanted");
  region.Put({.key = region.KeyIn(0, kBucket0, 1, "other", wanted), .value = "x"}, local);
  MachineDriver driver(region);
  driver.Warm();
  CHECK(driver.Get(wanted) == Need::kAbsent);
  CHECK(driver.reads().size() == (local ? 2 : 3));
  CHECK(driver.reads().back().length == kBucketHeaderBytes);
  CHECK(driver.machine().counters().confirmations == 1);
}

TEST_CASE("GetMachine: a header that changed before the confirmation starts a new round") {
  TestRegion region(kIncarnation);
  const std::string wanted = region.KeyIn(0, kBucket0, 1, "wanted");
  const Slot other =
      region.Put({.key = region.KeyIn(0, kBucket0, 1, "other", wanted), .value = "x"});
  MachineDriver driver(region);
  driver.Warm();
  // The memory in which the wanted key lay is reused between the header and the item, the key
  // itself moved.
  driver.before_read = [&](int number, const GetMachine::Read& read) {
    if (number != 3) return;
    REQUIRE(read.length == kBucketHeaderBytes);
    CHECK(region.RemoveSlot(0, kBucket0, other));
    region.Put({.key = wanted, .value = "here all the time"});
  };
  REQUIRE(driver.Get(wanted) == Need::kFound);
  CHECK(driver.machine().item().value == "here all the time");
  CHECK(driver.machine().rounds() == 1);
}

TEST_CASE("GetMachine: a miss with an unsound header is never believed") {
  TestRegion region(kIncarnation);
  MachineDriver driver(region);
  driver.Warm();
  BucketHeader& header = region.HeaderAt(region.BucketOffset(0, kBucket0));
  SECTION("torn once") {
    driver.after_read = [](int number, const GetMachine::Read&, std::span<std::byte> bytes) {
      if (number == 1) bytes[60] ^= std::byte{1};
    };
    CHECK(driver.Get("key") == Need::kAbsent);
    CHECK(driver.reads().size() == 2);
    CHECK(driver.machine().counters().torn_reads == 1);
  }
  SECTION("broken for good") {
    header.checksum ^= 1;
    CHECK(driver.Get("key") == Need::kAskServer);
    // Every other time its place and the bucket count are read again.
    CHECK(driver.reads().size() == GetMachine::kRoundsMax + 1 + GetMachine::kRoundsMax);
  }
  SECTION("of another incarnation") {
    header.checksum =
        HeaderChecksum(header, HeaderSeed(kIncarnation + 1, 0, kBucket0, RegionOffset{0}));
    CHECK(driver.Get("key") == Need::kAskServer);
  }
  SECTION("of another bucket") {
    header.checksum =
        HeaderChecksum(header, HeaderSeed(kIncarnation, 0, BucketIndex{1}, RegionOffset{0}));
    CHECK(driver.Get("key") == Need::kAskServer);
  }
  SECTION("never written") {
    header = {};
    CHECK(driver.Get("key") == Need::kAskServer);
  }
}

TEST_CASE("GetMachine: a hit needs no sound header") {
  TestRegion region(kIncarnation);
  region.Put({.key = "apple", .value = "red"}, true);
  region.HeaderAt(region.BucketOffset(0, kBucket0)).checksum ^= 1;
  MachineDriver driver(region);
  CHECK(driver.Get("apple") == Need::kFound);
}

TEST_CASE("GetMachine: a chain is walked to its end") {
  TestRegion region(kIncarnation);
  std::vector<std::string> keys;
  for (int i = 0; i < 40; ++i) {  // three headers
    keys.push_back("key" + std::to_string(i));
    region.Put({.key = keys.back(), .value = "value of " + keys.back()});
  }
  MachineDriver driver(region);
  driver.Warm();
  for (const std::string& key : keys) {
    REQUIRE(driver.Get(key) == Need::kFound);
    CHECK(driver.machine().item().value == "value of " + key);
    CHECK(driver.reads().size() <= 5);
  }
  CHECK(driver.Get("no such key") == Need::kAbsent);
  CHECK(driver.machine().counters().confirmations >= 1);
}

TEST_CASE("GetMachine: a chain is walked only for keys whose bit of the filter is set") {
  TestRegion region(kIncarnation);
  const RegionOffset overflow = region.AddOverflow(0, kBucket0);
  BucketHeader& first = region.HeaderAt(region.BucketOffset(0, kBucket0));
  MachineDriver driver(region);
  driver.Warm();
  for (int i = 0; i < 100; ++i) {
    const std::string key = "key" + std::to_string(i);
    const uint64_t bit = uint64_t{1} << SlotTag(region.Hash(key)) % 16;
    first.link = PackLink(0, overflow, ~bit & 0xffff);
    region.Seal(0, kBucket0, RegionOffset{0});
    REQUIRE(driver.Get(key) == Need::kAbsent);
    REQUIRE(driver.reads().size() == 1);
    first.link = PackLink(0, overflow, bit);
    region.Seal(0, kBucket0, RegionOffset{0});
    REQUIRE(driver.Get(key) == Need::kAbsent);
    REQUIRE(driver.reads().size() == 3);
  }
}

TEST_CASE("GetMachine: a chain of the bucket's own version needs no confirmation") {
  TestRegion region(kIncarnation);
  for (uint32_t i = 0; i < 2 * kSlotsPerHeader; ++i)
    region.Put({.key = region.KeyIn(0, kBucket0, 1, "key"), .value = "x"});
  const RegionOffset overflow = OverflowOf(region.HeaderAt(region.BucketOffset(0, kBucket0)).link);
  BucketHeader& first = region.HeaderAt(region.BucketOffset(0, kBucket0));
  BucketHeader& chained = region.HeaderAt(overflow);
  MachineDriver driver(region);
  driver.Warm();
  const std::string absent = region.KeyIn(0, kBucket0, 1, "absent");
  for (const uint32_t behind : {0u, 1u, 2u}) {
    chained.version = first.version - behind;
    region.Seal(0, kBucket0, overflow, /*new_version=*/false);
    REQUIRE(driver.Get(absent) == Need::kAbsent);
    CHECK(driver.reads().size() == (behind == 0 ? 2 : 3));
  }
  // A third header of another version takes the confirmation back.
  region.AddOverflow(0, kBucket0);
  chained.version = first.version;
  region.Seal(0, kBucket0, overflow, /*new_version=*/false);
  REQUIRE(driver.Get(absent) == Need::kAbsent);
  CHECK(driver.reads().size() == 4);
}

TEST_CASE("GetMachine: a chain that changes while it is walked is walked again") {
  TestRegion region(kIncarnation);
  for (uint32_t i = 0; i < kSlotsPerHeader; ++i)
    region.Put({.key = region.KeyIn(0, kBucket0, 1, "first"), .value = "x"});
  const std::string wanted = region.KeyIn(0, kBucket0, 1, "wanted");
  Slot in_second = kEmptySlot;
  for (uint32_t i = 0; i < kSlotsPerHeader; ++i)
    in_second = region.Put({.key = region.KeyIn(0, kBucket0, 1, "second"), .value = "x"});
  const Slot in_third = region.Put({.key = wanted, .value = "moves"});
  MachineDriver driver(region);
  driver.Warm();
  // Between the second and the third header the key moves from the third into the second, by the
  // rule of docs/formats.md: new place, then the first header's version, then the old place.
  bool moved = false;
  driver.before_read = [&](int, const GetMachine::Read& read) {
    const RegionOffset second = OverflowOf(region.HeaderAt(region.BucketOffset(0, kBucket0)).link);
    const RegionOffset third = OverflowOf(region.HeaderAt(second).link);
    if (moved || read.offset != third) return;
    moved = true;
    CHECK(region.RemoveSlot(0, kBucket0, in_second));
    region.HeaderAt(second).slots[kSlotsPerHeader - 1] = in_third;
    region.Seal(0, kBucket0, second);
    region.Seal(0, kBucket0, RegionOffset{0});
    region.HeaderAt(third).slots[0] = kEmptySlot;
    region.Seal(0, kBucket0, third);
  };
  REQUIRE(driver.Get(wanted) == Need::kFound);
  CHECK(moved);
  CHECK(driver.machine().item().value == "moves");
  CHECK(driver.machine().rounds() == 1);
}

TEST_CASE(
    "GetMachine: a chained header that is torn, of another place or outside the region is not "
    "followed") {
  TestRegion region(kIncarnation);
  const RegionOffset overflow = region.AddOverflow(0, kBucket0);
  BucketHeader& first = region.HeaderAt(region.BucketOffset(0, kBucket0));
  MachineDriver driver(region);
  driver.Warm();
  REQUIRE(driver.Get("key") == Need::kAbsent);
  SECTION("torn") { region.HeaderAt(overflow).slots[3] = 7; }
  SECTION("sealed for another place") {
    BucketHeader& header = region.HeaderAt(overflow);
    header.checksum = HeaderChecksum(header, HeaderSeed(kIncarnation, 0, kBucket0, overflow + 8));
  }
  SECTION("outside the region") {
    first.link = PackLink(0, RegionOffset{TestRegion::kRegionBytes - 64}, 0xffff);
    region.Seal(0, kBucket0, RegionOffset{0});
  }
  SECTION("far outside the region") {
    first.link = PackLink(0, RegionOffset{kLocationUnitsMax * 8}, 0xffff);
    region.Seal(0, kBucket0, RegionOffset{0});
  }
  CHECK(driver.Get("key") == Need::kAskServer);
  CHECK(driver.bad_reads() == 0);
  CHECK(driver.reads().size() <= 2 * (GetMachine::kRoundsMax + 1));
}

TEST_CASE("GetMachine: a chain that leads back into itself ends at the server") {
  TestRegion region(kIncarnation);
  const RegionOffset overflow = region.AddOverflow(0, kBucket0);
  region.HeaderAt(overflow).link = PackLink(0, overflow);
  region.Seal(0, kBucket0, overflow);
  MachineDriver driver(region);
  driver.Warm();
  CHECK(driver.Get("key") == Need::kAskServer);
  CHECK(driver.reads().size() == GetMachine::kChainMax + 1);
}

TEST_CASE(
    "GetMachine: an item that stays dead, being written or torn ends at the server after bounded "
    "rounds") {
  TestRegion region(kIncarnation);
  const bool local = GENERATE(true, false);
  const Slot slot = region.Put({.key = "apple", .value = "red"}, local);
  MachineDriver driver(region);
  driver.Warm();
  uint64_t torn = 0;
  uint64_t moved = GetMachine::kRoundsMax + 1;
  SECTION("dead") { region.SetState(slot, ItemState::kDead); }
  SECTION("being written") { region.SetState(slot, ItemState::kWriting); }
  SECTION("torn") {
    *region.At(LocationOf(slot) + 20) ^= std::byte{1};
    std::swap(torn, moved);
  }
  SECTION("a state that does not exist") {
    *region.At(LocationOf(slot)) |= std::byte{3};
    std::swap(torn, moved);
  }
  CHECK(driver.Get("apple") == Need::kAskServer);
  CHECK(driver.reads().size() == (GetMachine::kRoundsMax + 1) * (local ? 1 : 2));
  CHECK(driver.machine().counters().torn_reads == torn);
  CHECK(driver.machine().counters().moved_items == moved);
}

TEST_CASE("GetMachine: an item replaced between header and item is found at its new place") {
  TestRegion region(kIncarnation);
  const Slot slot = region.Put({.key = "apple", .value = "old"});
  MachineDriver driver(region);
  driver.Warm();
  driver.before_read = [&](int number, const GetMachine::Read&) {
    if (number == 2) region.Replace(slot, {.key = "apple", .value = "new"});
  };
  REQUIRE(driver.Get("apple") == Need::kFound);
  CHECK(driver.machine().item().value == "new");
  CHECK(driver.reads().size() == 4);
}

TEST_CASE("GetMachine: an item deleted between header and item is absent") {
  TestRegion region(kIncarnation);
  const Slot slot = region.Put({.key = "apple", .value = "old"});
  MachineDriver driver(region);
  driver.Warm();
  driver.before_read = [&](int number, const GetMachine::Read&) {
    if (number == 2) region.Delete("apple", slot);
  };
  CHECK(driver.Get("apple") == Need::kAbsent);
}

TEST_CASE("GetMachine: memory that was reused for another key is no proof of a miss") {
  TestRegion region(kIncarnation);
  const Slot slot = region.Put({.key = "apple", .value = "old"});
  MachineDriver driver(region);
  driver.Warm();
  driver.before_read = [&](int number, const GetMachine::Read&) {
    if (number != 2) return;
    region.Replace(slot, {.key = "apple", .value = "new"});
    region.WriteItem(LocationOf(slot), {.key = "other", .value = "old"});
  };
  REQUIRE(driver.Get("apple") == Need::kFound);
  CHECK(driver.machine().item().value == "new");
}

TEST_CASE(
    "GetMachine: slots outside the region, or longer or shorter than any item, are never read") {
  TestRegion region(kIncarnation);
  const uint32_t tag = SlotTag(region.Hash("apple"));
  const Slot slot = GENERATE_COPY(
      PackSlot(tag, 1024, RegionOffset{TestRegion::kRegionBytes}),
      PackSlot(tag, 1024, RegionOffset{TestRegion::kRegionBytes - 1016}),
      PackSlot(tag, 64, RegionOffset{kLocationUnitsMax * 8}),
      PackSlot(tag, 70000, RegionOffset{1 << 20}),
      PackSlot(tag, uint64_t{1} << 40, RegionOffset{1 << 20}),
      PackSlot(tag, 16, RegionOffset{1 << 20}), PackSlot(tag, 0, RegionOffset{1 << 20}));
  region.AddSlot(0, kBucket0, slot);
  MachineDriver driver(region, true, 65536);
  driver.Warm();
  CHECK(driver.Get("apple") == Need::kAskServer);
  CHECK(driver.bad_reads() == 0);
  for (const GetMachine::Read& read : driver.reads()) CHECK(read.into == GetMachine::Into::kBucket);
}

TEST_CASE(
    "GetMachine: a slot that ends behind its bucket is read exactly, not from the bucket's bytes") {
  TestRegion region(kIncarnation);
  const RegionOffset location = region.BucketOffset(0, kBucket0) + (TestRegion::kBucketBytes - 40);
  region.AddSlot(0, kBucket0,
                 region.WriteItem(location, {.key = "apple", .value = std::string(100, 'x')}));
  MachineDriver driver(region);
  driver.Warm();
  REQUIRE(driver.Get("apple") == Need::kFound);
  CHECK(driver.reads().size() == 2);
}

TEST_CASE("GetMachine: shards do not share buckets") {
  TestRegion region(kIncarnation, 4);
  for (uint32_t shard = 0; shard < 4; ++shard) {
    const std::string key = region.KeyIn(shard, kBucket0, 1, "key");
    region.Put({.key = key, .value = std::to_string(shard)}, true);
    MachineDriver driver(region);
    REQUIRE(driver.Get(key) == Need::kFound);
    CHECK(driver.machine().item().value == std::to_string(shard));
    CHECK(driver.Get(region.KeyIn(shard, kBucket0, 1, "absent")) == Need::kAbsent);
  }
}

TEST_CASE("GetMachine: a remembered location is one exact read while it holds the item") {
  TestRegion region(kIncarnation);
  const Slot slot = region.Put({.key = "apple", .value = "red"}, true);
  MachineDriver driver(region);
  driver.Warm();
  REQUIRE(driver.GetAt("apple", slot) == Need::kFound);
  CHECK(driver.reads().size() == 1);
  CHECK(driver.reads()[0].length == ItemBytesOf(slot));
  CHECK(driver.machine().slot() == slot);
}

TEST_CASE("GetMachine: a remembered location that is out of date costs a read, not an answer") {
  TestRegion region(kIncarnation);
  const Slot slot = region.Put({.key = "apple", .value = "red"});
  MachineDriver driver(region);
  driver.Warm();
  SECTION("replaced") {
    const Slot now = region.Replace(slot, {.key = "apple", .value = "new"});
    REQUIRE(driver.GetAt("apple", slot) == Need::kFound);
    CHECK(driver.machine().item().value == "new");
    CHECK(driver.machine().slot() == now);
    CHECK(driver.machine().counters().stale_locations == 1);
  }
  SECTION("memory reused by another key") {
    region.Replace(slot, {.key = "apple", .value = "new"});
    region.WriteItem(LocationOf(slot), {.key = "other", .value = "x"});
    REQUIRE(driver.GetAt("apple", slot) == Need::kFound);
    CHECK(driver.machine().item().value == "new");
  }
  SECTION("deleted") {
    region.Delete("apple", slot);
    CHECK(driver.GetAt("apple", slot) == Need::kAbsent);
    CHECK(driver.reads().size() == 2);
  }
  SECTION("a location that cannot be") {
    const Slot nowhere = PackSlot(1, 64, RegionOffset{TestRegion::kRegionBytes});
    REQUIRE(driver.GetAt("apple", nowhere) == Need::kFound);
    CHECK(driver.bad_reads() == 0);
  }
}

TEST_CASE("GetMachine: a held item may be dead, but only in the version that is held") {
  TestRegion region(kIncarnation);
  const Slot slot = region.Put({.key = "apple", .value = "red", .version = 77});
  MachineDriver driver(region);
  region.SetState(slot, ItemState::kDead);
  REQUIRE(driver.GetHeld("apple", slot, 77) == Need::kFound);
  CHECK(driver.machine().item().value == "red");
  CHECK(driver.reads().size() == 1);
  CHECK(driver.GetHeld("apple", slot, 78) == Need::kAskServer);
  CHECK(driver.GetHeld("pear", slot, 77) == Need::kAskServer);
  CHECK(driver.GetHeld("apple", PackSlot(1, 64, RegionOffset{TestRegion::kRegionBytes}), 77) ==
        Need::kAskServer);
  // What a GET without a hold makes of it.
  CHECK(driver.Get("apple") == Need::kAskServer);
  region.SetState(slot, ItemState::kWriting);
  CHECK(driver.GetHeld("apple", slot, 77) == Need::kAskServer);
}

TEST_CASE("GetMachine: a GET after a held one does not accept dead items") {
  TestRegion region(kIncarnation);
  const Slot slot = region.Put({.key = "apple", .value = "red", .version = 77});
  region.SetState(slot, ItemState::kDead);
  MachineDriver driver(region);
  REQUIRE(driver.GetHeld("apple", slot, 77) == Need::kFound);
  CHECK(driver.Get("apple") == Need::kAskServer);
  CHECK(driver.GetAt("apple", slot) == Need::kAskServer);
}

}  // namespace
}  // namespace kvd::test
