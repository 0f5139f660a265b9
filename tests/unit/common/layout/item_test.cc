// An item's lengths, version word and seed.
#include "common/layout/item.h"

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

TEST_CASE("Item: version and state come back") {
  for (const ItemState state : {ItemState::kDead, ItemState::kWriting, ItemState::kLive}) {
    for (const uint64_t version : {uint64_t{0}, uint64_t{1}, kVersionMax}) {
      const uint64_t word = PackVersion(version, state);
      CHECK(VersionOf(word) == version);
      CHECK(StateBitsOf(word) == static_cast<uint32_t>(state));
    }
  }
}

TEST_CASE("Item: memory that was never written is dead") {
  CHECK(StateBitsOf(0) == static_cast<uint32_t>(ItemState::kDead));
}

TEST_CASE("Item: each optional word takes 8 bytes") {
  CHECK(OptionalBytes(0) == 0);
  CHECK(OptionalBytes(kItemHasExpiry) == 8);
  CHECK(OptionalBytes(kItemHasUserFlags) == 8);
  CHECK(OptionalBytes(kItemLongValue) == 8);
  CHECK(OptionalBytes(kItemFlagsKnown) == 24);
}

TEST_CASE("Item: lengths are padded to 8, and do not overflow up to 2^62") {
  CHECK(ItemBytes(0, 1, 0) == 32);
  CHECK(ItemBytes(0, 8, 0) == 32);
  CHECK(ItemBytes(0, 8, 1) == 40);
  CHECK(ItemBytes(kItemFlagsKnown, 8, 0) == 56);
  for (uint64_t key = 1; key <= 64; ++key) {
    for (uint64_t value = 0; value <= 64; ++value) {
      const uint64_t bytes = ItemBytes(0, key, value);
      CHECK((bytes % 8 == 0 && bytes >= 24 + key + value && bytes < 32 + key + value));
    }
  }
  const uint64_t huge = uint64_t{1} << 62;
  CHECK(ItemBytes(kItemFlagsKnown, kKeyBytesMax, huge) == huge + kKeyBytesMax + 48);
}

TEST_CASE("Item: checksums of the same bytes in other incarnations, places and versions differ") {
  Random random(Seed());
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t incarnation = random.Next();
    const RegionOffset location{random.Uniform(1 << 30) * 8};
    const uint64_t version = random.Uniform(kVersionMax);
    const uint64_t body[] = {random.Next(), random.Next(), random.Next()};
    const auto checksum = [&body](uint64_t of, RegionOffset at, uint64_t written) {
      return ItemChecksum(body, sizeof(body), of, at, written);
    };
    const uint64_t right = checksum(incarnation, location, version);
    if (right == checksum(incarnation + 1, location, version) ||
        right == checksum(incarnation, location + 8, version) ||
        right == checksum(incarnation, location, version + 1)) {
      FAIL("incarnation " << incarnation << " location " << ToBytes(location) << " version "
                          << version);
    }
  }
}

}  // namespace
}  // namespace kvd::test
