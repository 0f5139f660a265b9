// An item's lengths, forms, version word and check.
#include "common/layout/item.h"

#include <algorithm>

#include "common/base/random.h"
#include "common/layout/slot.h"
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
  CHECK(ItemBytes(0, 1, 0) == kItemBytesMin);
  CHECK(ItemBytes(0, 8, 0) == 24);
  CHECK(ItemBytes(0, 8, 1) == 32);
  CHECK(ItemBytes(0, 8, 64) == 88);
  CHECK(ItemBytes(kItemFlagsKnown, 8, 0) == 56);
  for (uint64_t key = 1; key <= 64; ++key) {
    for (uint64_t value = 0; value <= 64; ++value) {
      const uint64_t bytes = ItemBytes(0, key, value);
      CHECK((bytes % 8 == 0 && bytes >= 16 + key + value && bytes < 24 + key + value));
    }
  }
  const uint64_t huge = uint64_t{1} << 62;
  CHECK(ItemBytes(kItemFlagsKnown, kKeyBytesMax, huge) == huge + kKeyBytesMax + 48);
}

TEST_CASE(
    "Item: the short form has keys of up to 127 and values of up to 511 bytes, and no flags") {
  CHECK(IsShortItem(0, 1, 0));
  CHECK(IsShortItem(0, 127, 511));
  CHECK_FALSE(IsShortItem(0, 128, 0));
  CHECK_FALSE(IsShortItem(0, 1, 512));
  for (uint8_t flags = 1; flags <= kItemFlagsKnown; ++flags) CHECK_FALSE(IsShortItem(flags, 1, 0));
  CHECK(BytesBeforeKey(0, 127, 511) == 16);
  CHECK(BytesBeforeKey(0, 128, 511) == 24);
  CHECK(BytesBeforeKey(0, 127, 512) == 24);
  CHECK(BytesBeforeKey(kItemHasExpiry, 1, 0) == 32);
}

TEST_CASE("Item: the short form's lengths come back, and are never the long form's mark") {
  for (uint64_t key = 1; key <= kShortKeyBytesMax; ++key) {
    for (uint64_t value = 0; value <= kShortValueBytesMax; ++value) {
      const uint64_t word = ~kShortLengthsMask | PackShortLengths(key, value);
      if (ShortKeyBytes(word) != key || ShortValueBytes(word) != value) {
        FAIL("key of " << key << ", value of " << value);
      }
    }
  }
}

// An item is overwritten in place only by one of the same occupied size, key and flags.
TEST_CASE("Item: items of one key, one size and the same flags have the same form") {
  for (uint64_t key = 1; key <= 2 * kShortKeyBytesMax; ++key) {
    uint64_t short_max = 0;
    uint64_t long_min = UINT64_MAX;
    for (uint64_t value = 0; value <= 2 * kShortValueBytesMax; ++value) {
      const uint64_t bytes = RoundUpItemSize(ItemBytes(0, key, value));
      if (IsShortItem(0, key, value)) {
        short_max = std::max(short_max, bytes);
      } else {
        long_min = std::min(long_min, bytes);
      }
    }
    if (short_max >= long_min) FAIL("key of " << key);
  }
}

TEST_CASE(
    "Item: checks of the same bytes in other incarnations, places, versions and lengths differ") {
  Random random(Seed());
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t incarnation = random.Next();
    const RegionOffset location{random.Uniform(1 << 30) * 8};
    const uint64_t version = random.Uniform(kVersionMax);
    const uint64_t body[] = {random.Next(), random.Next(), random.Next()};
    const uint64_t lengths = random.OneIn(2) ? 0 : PackShortLengths(1 + random.Uniform(15), 8);
    const auto check = [&](uint64_t of, RegionOffset at, uint64_t written, uint64_t has) {
      const uint64_t word = ItemCheckWord(body, sizeof(body), of, at, written, has);
      return has == 0 ? word : word & ~kShortLengthsMask;
    };
    const uint64_t right = check(incarnation, location, version, lengths);
    if (right == check(incarnation + 1, location, version, lengths) ||
        right == check(incarnation, location + 8, version, lengths) ||
        right == check(incarnation, location, version + 1, lengths) ||
        (lengths != 0 && right == check(incarnation, location, version, lengths ^ 1 << i % 16)) ||
        (lengths == 0 && (right & 127) != 0)) {
      FAIL("incarnation " << incarnation << " location " << ToBytes(location) << " version "
                          << version << " lengths " << lengths);
    }
  }
}

}  // namespace
}  // namespace kvd::test
