// A slot's 64 bits: what goes in comes out, and sizes are rounded as docs/formats.md says.
#include "common/layout/slot.h"

#include <bit>
#include <cstdint>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

// Everything that must hold for one size; true, so that loops do not count millions of assertions.
bool SizeIsRoundedWell(uint64_t bytes) {
  const uint32_t code = EncodeItemSize(bytes);
  const uint64_t rounded = DecodeItemSize(code);
  return code <= 0xfff && rounded >= bytes && rounded % kLocationUnitBytes == 0 &&
         EncodeItemSize(rounded) == code && RoundUpItemSize(rounded) == rounded;
}

bool RoundsUpByLessThanOne128th(uint64_t bytes) {
  const uint64_t units = (bytes + 7) / 8 * 8;
  return (RoundUpItemSize(bytes) - units) * 128 < units || RoundUpItemSize(bytes) == units;
}

TEST_CASE("Slot: sizes up to 2,040 bytes are exact in units of 8") {
  for (uint64_t bytes = 0; bytes <= 2040; ++bytes) {
    CHECK(RoundUpItemSize(bytes) == (bytes + 7) / 8 * 8);
  }
}

TEST_CASE("Slot: every size up to 4 MiB is rounded up by less than 1/128, for good, in order") {
  uint64_t last = 0;
  for (uint64_t bytes = 0; bytes <= uint64_t{4} << 20; ++bytes) {
    const uint64_t rounded = RoundUpItemSize(bytes);
    if (SizeIsRoundedWell(bytes) && RoundsUpByLessThanOne128th(bytes) && rounded >= last) {
      last = rounded;
      continue;
    }
    FAIL("size " << bytes << " is rounded to " << rounded);
  }
}

TEST_CASE("Slot: sizes around every code's border, up to the largest") {
  for (uint32_t code = 1; code <= EncodeItemSize(kItemBytesMax); ++code) {
    const uint64_t bytes = DecodeItemSize(code);
    CAPTURE(code, bytes);
    CHECK(DecodeItemSize(code - 1) < bytes);
    // 0 would.
    REQUIRE(EncodeItemSize(bytes) == code);
    REQUIRE(EncodeItemSize(bytes - 1) == code);
    REQUIRE(EncodeItemSize(bytes - 7) == code);
    REQUIRE(EncodeItemSize(bytes - 8) <= code);
    if (bytes < kItemBytesMax) REQUIRE(EncodeItemSize(bytes + 1) == code + 1);
  }
}

TEST_CASE("Slot: random sizes up to the largest are rounded well") {
  Random random(Seed());
  for (int i = 0; i < 1'000'000; ++i) {
    const uint64_t bytes = random.Uniform(kItemBytesMax) >> random.Uniform(40);
    if (!SizeIsRoundedWell(bytes) || !RoundsUpByLessThanOne128th(bytes)) FAIL("size " << bytes);
    const uint64_t larger = bytes + random.Uniform(1000);
    if (RoundUpItemSize(larger) < RoundUpItemSize(bytes)) FAIL(bytes << " and " << larger);
  }
}

TEST_CASE("Slot: tag, size and location come back") {
  Random random(Seed());
  for (int i = 0; i < 100'000; ++i) {
    const auto tag = static_cast<uint32_t>(random.Uniform(4096));
    const uint64_t bytes = 1 + (random.Uniform(kItemBytesMax) >> random.Uniform(40));
    const RegionOffset location{(1 + random.Uniform(kLocationUnitsMax)) * kLocationUnitBytes};
    const Slot slot = PackSlot(tag, bytes, location);
    if (TagOf(slot) != tag || LocationOf(slot) != location ||
        ItemBytesOf(slot) != RoundUpItemSize(bytes) || slot == kEmptySlot) {
      FAIL("tag " << tag << " bytes " << bytes << " location " << ToBytes(location));
    }
  }
}

TEST_CASE("Slot: the extremes of each field do not touch the others") {
  const RegionOffset far{kLocationUnitsMax * kLocationUnitBytes};
  CHECK(PackSlot(0xfff, 0, RegionOffset{0}) == 0xfff0'0000'0000'0000);
  CHECK(PackSlot(0, 0, far) == 0x0000'00ff'ffff'ffff);
  CHECK(PackSlot(0, kItemBytesMax, RegionOffset{0}) == uint64_t{EncodeItemSize(kItemBytesMax)}
                                                           << 40);
  CHECK(TagOf(PackSlot(0, kItemBytesMax, far)) == 0);
  CHECK(LocationOf(PackSlot(0xfff, kItemBytesMax, RegionOffset{0})) == RegionOffset{0});
}

TEST_CASE("Slot: the tag is bits 36 to 47 of the hash") {
  for (int bit = 0; bit < 64; ++bit) {
    const uint32_t tag = SlotTag(uint64_t{1} << bit);
    CHECK(tag == (bit >= 36 && bit < 48 ? 1u << (bit - 36) : 0u));
  }
}

}  // namespace
}  // namespace kvd::test
