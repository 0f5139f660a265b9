#include "server/store/item_writer.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "common/base/units.h"
#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

constexpr RegionOffset kAt{1 * kMiB + 64};
constexpr RegionOffset kElsewhere{2 * kMiB + 8};

class ItemWriterTest {
 public:
  ItemWriterTest()
      : region_(*Region::Create(
            {.memory_bytes = 8 * kMiB, .hugepages = HugepagePolicy::kOff, .progress = {}})) {
    // Whatever lay there before.
    std::memset(region_->At(RegionOffset{1 * kMiB}), 0xa5, 2 * kMiB);
  }

 protected:
  ItemVerdict Judge(RegionOffset at, ItemShape shape) {
    const std::span<const std::byte> bytes(region_->At(at), shape.item_bytes());
    return JudgeItem(bytes,
                     {.incarnation = region_->geometry().incarnation,
                      .location = at,
                      .key = {},
                      .held_version = 0},
                     judged_);
  }

  std::unique_ptr<Region> region_;
  ItemWriter items_{*region_};
  ItemView judged_;
};

TEST_CASE_METHOD(ItemWriterTest, "ItemWriter: an item is judged WRITING, then current, then dead") {
  for (const uint64_t key_len : {1, 7, 8, 9, 127, 128, 4096}) {
    for (const uint64_t value_len : {0, 1, 7, 8, 64, 511, 512, 4096, 100'000}) {
      const std::string key(key_len, 'k');
      const std::string value(value_len, 'v');
      const ItemShape shape{key_len, value_len};
      items_.WriteNew(kAt, 77, {key, value});
      REQUIRE(Judge(kAt, shape) == ItemVerdict::kWriting);
      items_.MarkLive(kAt);
      REQUIRE(Judge(kAt, shape) == ItemVerdict::kCurrent);
      REQUIRE(judged_.key == key);
      REQUIRE(judged_.value == value);
      REQUIRE(judged_.version == 77);
      const ItemView read = items_.Read(kAt);
      REQUIRE(read.key == key);
      REQUIRE(read.value == value);
      REQUIRE(read.version == 77);
      const auto* bytes = reinterpret_cast<const char*>(region_->At(kAt));
      const uint64_t unpadded = shape.bytes_before_key() + key_len + value_len;
      REQUIRE(
          std::all_of(bytes + unpadded, bytes + shape.item_bytes(), [](char c) { return c == 0; }));
      REQUIRE(static_cast<unsigned char>(bytes[shape.item_bytes()]) ==
              0xa5);  // and not a byte more
      items_.MarkDead(kAt);
      REQUIRE(Judge(kAt, shape) == ItemVerdict::kDead);
      std::memset(region_->At(kAt), 0xa5, shape.item_bytes());
    }
  }
}

TEST_CASE_METHOD(ItemWriterTest,
                 "ItemWriter: a copy keeps the version and verifies at its own place only") {
  items_.WriteNew(kAt, 5, {"key", "value"});
  items_.MarkLive(kAt);
  const ItemShape shape{3, 5};
  items_.CopyNew(kElsewhere, kAt, shape.occupied_bytes());
  REQUIRE(Judge(kElsewhere, shape) == ItemVerdict::kWriting);
  items_.MarkLive(kElsewhere);
  REQUIRE(Judge(kElsewhere, shape) == ItemVerdict::kCurrent);
  REQUIRE(judged_.version == 5);
  REQUIRE(items_.KeyAt(kElsewhere) == "key");
  std::memmove(region_->At(kElsewhere + 512), region_->At(kElsewhere), shape.item_bytes());
  REQUIRE(Judge(kElsewhere + 512, shape) == ItemVerdict::kTorn);
}

TEST_CASE_METHOD(ItemWriterTest,
                 "ItemWriter: what has a flipped bit is not whole, and no more so where it is copied") {
  for (const uint64_t value_len : {0u, 5u, 300u}) {
    const std::string value(value_len, 'v');
    const ItemShape shape{3, value_len};
    const uint64_t bytes = shape.occupied_bytes();
    // The first word has the state, which is not part of the checksum.
    for (uint64_t bit = 64; bit < shape.item_bytes() * 8; ++bit) {
      CAPTURE(value_len, bit);
      items_.WriteNew(kAt, 5, {"key", value});
      items_.MarkLive(kAt);
      REQUIRE(items_.IsWhole(kAt, bytes));
      region_->At(kAt)[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      REQUIRE_FALSE(items_.IsWhole(kAt, bytes));
      items_.CopyNew(kElsewhere, kAt, bytes);
      items_.MarkLive(kElsewhere);
      REQUIRE_FALSE(items_.IsWhole(kElsewhere, bytes));
      REQUIRE(Judge(kElsewhere, shape) == ItemVerdict::kTorn);
    }
  }
}

TEST_CASE_METHOD(ItemWriterTest,
                 "ItemWriter: what is prepared is not current before it is sealed and marked") {
  const std::string value = "filled in by somebody else";
  const ItemShape shape{3, value.size()};
  std::byte* const to = items_.Prepare(kAt, "key", value.size());
  REQUIRE(items_.KeyAt(kAt) == "key");
  REQUIRE(Judge(kAt, shape) == ItemVerdict::kTorn);
  std::memcpy(to, value.data(), value.size());
  REQUIRE(Judge(kAt, shape) == ItemVerdict::kTorn);
  items_.Seal(kAt, 9);
  REQUIRE(Judge(kAt, shape) == ItemVerdict::kWriting);
  items_.MarkLive(kAt);
  REQUIRE(Judge(kAt, shape) == ItemVerdict::kCurrent);
  REQUIRE(judged_.value == value);
  REQUIRE(judged_.version == 9);
}

TEST_CASE_METHOD(ItemWriterTest,
                 "ItemWriter: an overwrite in place may change the length within the padding") {
  items_.WriteNew(kAt, 1, {"key", "12345"});  // 16 + 8 bytes, no padding
  items_.MarkLive(kAt);
  items_.Overwrite(kAt, 2, "1");
  REQUIRE(Judge(kAt, {3, 1}) == ItemVerdict::kCurrent);
  REQUIRE(judged_.value == "1");
  REQUIRE(judged_.version == 2);
  items_.Overwrite(kAt, 3, "abcde");
  REQUIRE(Judge(kAt, {3, 5}) == ItemVerdict::kCurrent);
  REQUIRE(judged_.value == "abcde");
}

TEST_CASE_METHOD(ItemWriterTest,
                 "ItemWriter: both forms keep key, value and extras, at their borders, with and "
                 "without expiry") {
  for (const uint64_t key_len : {1, 127, 128}) {
    for (const uint64_t value_len : {0, 511, 512}) {
      for (const uint64_t expiry : {uint64_t{0}, uint64_t{1'900'000'000'000'000}}) {
        const std::string key(key_len, 'k');
        const std::string value(value_len, 'v');
        const ItemExtras extras{.expiry_unix_us = expiry, .user_flags = 0};
        const ItemShape shape{key_len, value_len, extras.flags()};
        CAPTURE(key_len, value_len, expiry);
        std::byte* const to = items_.Prepare(kAt, key, value_len, extras);
        REQUIRE(items_.KeyAt(kAt) == key);
        REQUIRE(items_.ShapeAt(kAt).value_len == value_len);
        REQUIRE(items_.FlagsAt(kAt) == extras.flags());
        std::memset(to, 'v', value_len);
        items_.Seal(kAt, 3);
        items_.MarkLive(kAt);
        REQUIRE(Judge(kAt, shape) == ItemVerdict::kCurrent);
        REQUIRE(judged_.value == value);
        REQUIRE(judged_.expiry_unix_us == expiry);
        REQUIRE(items_.HasLapsed(PackSlot(0, shape.item_bytes(), kAt), expiry) == (expiry != 0));
        items_.CopyNew(kElsewhere, kAt, shape.occupied_bytes());
        items_.MarkLive(kElsewhere);
        REQUIRE(Judge(kElsewhere, shape) == ItemVerdict::kCurrent);
        REQUIRE(judged_.key == key);
        items_.Overwrite(kAt, 4, std::string(value_len, 'w'), extras);
        REQUIRE(Judge(kAt, shape) == ItemVerdict::kCurrent);
        REQUIRE(judged_.value == std::string(value_len, 'w'));
      }
    }
  }
}

TEST_CASE("ItemShape: occupied bytes are what a slot can say") {
  for (const uint64_t value_len : {0, 1, 64, 2000, 2041, 100'000, 4'194'304}) {
    const ItemShape shape{8, value_len};
    REQUIRE(shape.occupied_bytes() == ItemBytesOf(PackSlot(1, shape.item_bytes(), kAt)));
    REQUIRE(shape.occupied_bytes() >= shape.item_bytes());
  }
  REQUIRE(ItemShape{8, uint64_t{1} << 32}.flags() == kItemLongValue);
  REQUIRE(ItemShape{8, (uint64_t{1} << 32) - 1}.flags() == 0);
}

}  // namespace
}  // namespace kvd
