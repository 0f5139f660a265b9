// The first attempt at a mapped region: it says "found" for the key's live item and for nothing
// else.
#include "client/internal/window_get.h"

#include <memory>
#include <string>

#include "common/base/random.h"
#include "tests/support/test.h"
#include "tests/unit/client/internal/machine_driver.h"
#include "tests/unit/client/internal/test_region.h"

namespace kvd::test {
namespace {

constexpr uint64_t kIncarnation = 99;
constexpr BucketIndex kBucket0{0};

struct Fixture {
  Fixture() {
    MachineDriver driver(region);
    driver.Warm();
    map = driver.map();
    region.HeapRoom(64);  // what lies last in the region is left alone
  }

  bool Find(std::string_view key) { return get->Find(key, region.Hash(key), item, slot); }

  TestRegion region{kIncarnation};
  RegionMap map{region.geometry(), 1 << 20};
  uint32_t ended = 0;  // as ClientChannel::ended
  // On the heap, for it asks for a cache line of its own.
  std::unique_ptr<WindowGet> get = std::make_unique<WindowGet>(region.bytes().data(), &ended, map);
  ItemView item;
  Slot slot = kEmptySlot;
};

TEST_CASE("WindowGet: finds live items of every size up to its buffer's, wherever they lie") {
  Fixture fixture;
  const bool local = GENERATE(true, false);
  for (size_t bytes = 0; bytes < (local ? 40u : WindowGet::kItemBytesMax - 100);
       bytes = bytes * 5 / 4 + 1) {
    const std::string key = fixture.region.KeyIn(0, kBucket0, 1, "key");
    const Slot slot = fixture.region.Put({.key = key, .value = std::string(bytes, 'v')}, local);
    CAPTURE(bytes);
    REQUIRE(fixture.Find(key));
    CHECK(fixture.item.value == std::string(bytes, 'v'));
    CHECK(fixture.item.key == key);
    CHECK(fixture.slot == slot);
    REQUIRE(fixture.get->FindAt(key, slot, fixture.item));
    CHECK(fixture.item.value == std::string(bytes, 'v'));
    fixture.region.Delete(key, slot);
  }
}

TEST_CASE(
    "WindowGet: an item that could be copied only with bytes beyond the region is left alone") {
  Fixture fixture;
  for (const size_t value :
       {size_t{1}, size_t{5}, size_t{9}, size_t{17}, size_t{25}, size_t{37}, size_t{100}}) {
    const uint64_t bytes = ItemBytes(0, 3, value);
    const RegionOffset end{TestRegion::kRegionBytes - bytes};
    const Slot slot =
        fixture.region.WriteItem(end, {.key = "key", .value = std::string(value, 'v')});
    CAPTURE(bytes);
    CHECK(fixture.get->FindAt("key", slot, fixture.item) == (bytes % 32 == 0));
  }
}

TEST_CASE(
    "WindowGet: says nothing of items that are dead, being written, torn, absent or too long for "
    "it") {
  Fixture fixture;
  const Slot slot = fixture.region.Put({.key = "key", .value = "v"});
  REQUIRE(fixture.Find("key"));
  SECTION("dead") { fixture.region.SetState(slot, ItemState::kDead); }
  SECTION("being written") { fixture.region.SetState(slot, ItemState::kWriting); }
  SECTION("torn") { *fixture.region.At(LocationOf(slot) + 17) ^= std::byte{1}; }
  SECTION("absent") { fixture.region.Delete("key", slot); }
  SECTION("too long") {
    fixture.region.Replace(slot,
                           {.key = "key", .value = std::string(WindowGet::kItemBytesMax, 'v')});
  }
  SECTION("another key's") {
    fixture.region.WriteItem(LocationOf(slot), {.key = "yek", .value = "v"});
  }
  CHECK_FALSE(fixture.Find("key"));
  CHECK_FALSE(fixture.get->FindAt("key", slot, fixture.item));
}

TEST_CASE("WindowGet: tag 0 does not lead to empty slots") {
  Fixture fixture;
  for (int i = 0; i < 3; ++i) {
    std::string key;
    do {
      key = fixture.region.KeyIn(0, kBucket0, 1, "key");
    } while (SlotTag(fixture.region.Hash(key)) != 0);
    CHECK_FALSE(fixture.Find(key));
  }
}

TEST_CASE("WindowGet: slots that cannot be are not followed, nor a window that is not there") {
  Fixture fixture;
  Random random(Seed());
  const uint32_t tag = SlotTag(fixture.region.Hash("key"));
  for (int i = 0; i < 100'000; ++i) {
    Slot slot = random.Next();
    if (random.OneIn(2)) {
      slot = PackSlot(tag, random.Uniform(5000),
                      RegionOffset{TestRegion::kRegionBytes + 80 - random.Uniform(640) * 8});
    }
    fixture.region.HeaderAt(fixture.region.BucketOffset(0, kBucket0)).slots[random.Uniform(kSlotsPerHeader)] =
        slot;
    if (fixture.Find("key") || fixture.get->FindAt("key", slot, fixture.item))
      FAIL("found in slot " << slot);
  }
  const auto nothing = std::make_unique<WindowGet>(nullptr, &fixture.ended, fixture.map);
  CHECK_FALSE(nothing->Find("key", fixture.region.Hash("key"), fixture.item, fixture.slot));
  CHECK_FALSE(nothing->FindAt("key", PackSlot(tag, 64, RegionOffset{4096}), fixture.item));
}

TEST_CASE("WindowGet: what was read of a session that has ended is not believed") {
  Fixture fixture;
  const std::string key = fixture.region.KeyIn(0, kBucket0, 1, "key");
  fixture.region.Put({.key = key, .value = "v"});
  auto* const superblock = reinterpret_cast<Superblock*>(fixture.region.bytes().data());
  superblock->lifeline.word = 1;
  REQUIRE(fixture.Find(key));
  CHECK(fixture.get->ServerAlive());
  fixture.ended = 1;
  CHECK_FALSE(fixture.get->ServerAlive());
  fixture.ended = 0;
  superblock->lifeline.word = kLifelineOwnerDied | 1;
  CHECK_FALSE(fixture.get->ServerAlive());
}

TEST_CASE("WindowGet: a map that knows no segment yet finds nothing") {
  Fixture fixture;
  fixture.region.Put({.key = "key", .value = "v"});
  fixture.map = RegionMap(fixture.region.geometry(), 1 << 20);
  CHECK_FALSE(fixture.Find("key"));
}

}  // namespace
}  // namespace kvd::test
