// The one function that decides whether an item's bytes are returned: it says "current" for the
// whole, live item of that place and key, and for nothing else.
#include "common/protocol/judge_item.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/support/encode_item.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr uint64_t kIncarnation = 0x1122334455667788;
constexpr RegionOffset kLocation{1 << 20};
constexpr uint64_t kVersion = 0x123456789ab;

struct Made {
  std::string key = "the key";
  std::string value = "the value";
  uint8_t flags = 0;
  ItemState state = ItemState::kLive;
  uint64_t version = kVersion;
  RegionOffset location = kLocation;
  uint64_t incarnation = kIncarnation;
  bool long_form = false;
};

std::vector<std::byte> Make(const Made& made) {
  const std::string bytes = EncodeItem({.key = made.key,
                                        .value = made.value,
                                        .state = made.state,
                                        .version = made.version,
                                        .flags = made.flags,
                                        .expiry_unix_us = 1'800'000'000'000'000,
                                        .user_flags = 0xdecade,
                                        .incarnation = made.incarnation,
                                        .location = made.location,
                                        .long_form = made.long_form});
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return std::vector<std::byte>(begin, begin + bytes.size());
}

ItemExpectation Expect(std::string_view key = "the key", uint64_t held_version = 0) {
  return {kIncarnation, kLocation, key, held_version};
}

// Judges a copy that ends where its memory ends, so that a sanitizer sees any look beyond it.
ItemVerdict Judge(std::span<const std::byte> bytes, const ItemExpectation& expected,
                  ItemView& item) {
  const auto exact = std::make_unique<std::byte[]>(bytes.size());
  if (!bytes.empty()) std::memcpy(exact.get(), bytes.data(), bytes.size());
  const ItemVerdict verdict =
      JudgeItem(std::span<const std::byte>(exact.get(), bytes.size()), expected, item);
  if (verdict != ItemVerdict::kCurrent) return verdict;
  static std::string key;
  static std::string value;
  key = item.key;
  value = item.value;
  item.key = key;
  item.value = value;
  return verdict;
}

ItemVerdict Judge(std::span<const std::byte> bytes, const ItemExpectation& expected = Expect()) {
  ItemView item;
  return Judge(bytes, expected, item);
}

TEST_CASE("JudgeItem: a whole live item is current, with every combination of optional words") {
  for (uint8_t flags = 0; flags <= kItemFlagsKnown; ++flags) {
    for (const size_t value_len : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{300},
                                   size_t{511}, size_t{512}, size_t{70000}}) {
      Made made;
      made.flags = flags;
      made.value = std::string(value_len, 'v');
      ItemView item;
      CAPTURE(int{flags}, value_len);
      REQUIRE(Judge(Make(made), Expect(), item) == ItemVerdict::kCurrent);
      CHECK(item.key == "the key");
      CHECK(item.value == made.value);
      CHECK(item.version == kVersion);
      CHECK(item.expiry_unix_us == ((flags & kItemHasExpiry) != 0 ? 1'800'000'000'000'000 : 0));
      CHECK(item.user_flags == ((flags & kItemHasUserFlags) != 0 ? 0xdecade : 0));
    }
  }
}

TEST_CASE("JudgeItem: keys of 1 and of 4096 bytes; no other key, nor a prefix of it") {
  for (const size_t length : {size_t{1}, size_t{127}, size_t{128}, size_t{4096}}) {
    Made made;
    made.key = std::string(length, 'k');
    CHECK(Judge(Make(made), Expect(made.key)) == ItemVerdict::kCurrent);
    CHECK(Judge(Make(made), Expect({})) == ItemVerdict::kCurrent);  // any key
    CHECK(Judge(Make(made), Expect(made.key + "k")) == ItemVerdict::kOtherKey);
    CHECK(Judge(Make(made), Expect("other")) == ItemVerdict::kOtherKey);
  }
  CHECK(Judge(Make({}), Expect("the ke")) == ItemVerdict::kOtherKey);
  CHECK(Judge(Make({}), Expect("the keythe")) == ItemVerdict::kOtherKey);
}

TEST_CASE("JudgeItem: more bytes than the item needs do not matter") {
  std::vector<std::byte> bytes = Make({});
  bytes.resize(bytes.size() + 64, std::byte{0xee});
  CHECK(Judge(bytes) == ItemVerdict::kCurrent);
}

// Of each form the smallest and the largest or an ordinary one, and one with all optional words.
std::vector<Made> BothForms() {
  std::vector<Made> all(6);
  all[0].key = "k";
  all[0].value = "";
  all[1].value = std::string(60, 'v');
  all[2].key = std::string(127, 'k');
  all[2].value = std::string(511, 'v');
  all[3].key = std::string(128, 'k');
  all[3].value = "";
  all[4].value = std::string(512, 'v');
  all[5].flags = kItemFlagsKnown;
  all[5].value = std::string(60, 'v');
  return all;
}

TEST_CASE("JudgeItem: an item has one form only") {
  for (Made made : BothForms()) {
    const bool is_short = IsShortItem(made.flags, made.key.size(), made.value.size());
    CAPTURE(made.key.size(), made.value.size(), int{made.flags});
    made.long_form = true;
    CHECK(Judge(Make(made), Expect(made.key)) ==
          (is_short ? ItemVerdict::kTorn : ItemVerdict::kCurrent));
  }
}

TEST_CASE("JudgeItem: no flipped bit is current; two bits of state say dead or being written") {
  for (const Made& made : BothForms()) {
    std::vector<std::byte> bytes = Make(made);
    const size_t item_bits = bytes.size() * 8;
    bytes.resize(bytes.size() + 1024);  // so that a larger length is refused for its checksum too
    const uint8_t flags = made.flags;
    for (size_t bit = 0; bit < item_bits; ++bit) {
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
      const ItemVerdict verdict = Judge(bytes, Expect(made.key));
      bytes[bit / 8] ^= std::byte{1} << bit % 8;
      CAPTURE(int{flags}, made.key.size(), made.value.size(), bit);
      // LIVE is 2: bit 0 makes it 3, which is no state; bit 1 makes it 0, which is DEAD.
      REQUIRE(verdict == (bit == 1 ? ItemVerdict::kDead : ItemVerdict::kTorn));
    }
  }
}

TEST_CASE("JudgeItem: states") {
  const auto of = [](ItemState state) {
    Made made;
    made.state = state;
    return Make(made);
  };
  CHECK(Judge(of(ItemState::kLive)) == ItemVerdict::kCurrent);
  CHECK(Judge(of(ItemState::kDead)) == ItemVerdict::kDead);
  CHECK(Judge(of(ItemState::kWriting)) == ItemVerdict::kWriting);
  CHECK(Judge(of(static_cast<ItemState>(3))) == ItemVerdict::kTorn);
}

TEST_CASE("JudgeItem: a state says nothing while the bytes are torn") {
  for (const ItemState state : {ItemState::kDead, ItemState::kWriting, ItemState::kLive}) {
    Made made;
    made.state = state;
    std::vector<std::byte> bytes = Make(made);
    bytes[30] ^= std::byte{1};
    CHECK(Judge(bytes) == ItemVerdict::kTorn);
  }
}

TEST_CASE("JudgeItem: no truncated copy is anything but torn") {
  std::vector<Made> all = BothForms();
  for (const uint8_t flags : {kItemHasExpiry, kItemHasUserFlags, kItemLongValue}) {
    all.emplace_back().flags = flags;
  }
  for (const Made& made : all) {
    const std::vector<std::byte> bytes = Make(made);
    for (size_t length = 0; length < bytes.size(); ++length) {
      CAPTURE(int{made.flags}, made.key.size(), length);
      REQUIRE(Judge(std::span(bytes).first(length), Expect(made.key)) == ItemVerdict::kTorn);
    }
  }
}

TEST_CASE("JudgeItem: no other lengths of the short form are current, whatever the copy holds") {
  Made made;
  made.value = std::string(58, '\0');  // so that lengths can move without changing the padded bytes
  made.key = std::string(6, '\0');
  std::vector<std::byte> bytes = Make(made);
  bytes.resize(1024);
  const auto right = static_cast<uint16_t>(PackShortLengths(6, 58));
  for (uint32_t lengths = 0; lengths <= kShortLengthsMask; ++lengths) {
    const auto low = static_cast<uint16_t>(lengths);
    std::memcpy(bytes.data() + 8, &low, sizeof(low));
    if (low == right) {
      REQUIRE(Judge(bytes, Expect(made.key)) == ItemVerdict::kCurrent);
    } else if (Judge(bytes, Expect({})) != ItemVerdict::kTorn) {
      FAIL("lengths " << lengths);
    }
  }
}

TEST_CASE("JudgeItem: lengths that overflow or run out of the copy are torn") {
  Made made;
  made.flags = kItemLongValue;
  std::vector<std::byte> bytes = Make(made);
  for (const uint64_t length :
       {~uint64_t{0}, ~uint64_t{0} - 31, ~uint64_t{0} - 38, uint64_t{1} << 63, uint64_t{1} << 62,
        uint64_t{bytes.size()}, uint64_t{bytes.size()} + 1}) {
    std::memcpy(bytes.data() + kLongItemHeaderBytes, &length, 8);
    CHECK(Judge(bytes) == ItemVerdict::kTorn);
  }
  made = {};
  made.value = std::string(600, 'v');
  bytes = Make(made);
  LongItemHeader header;
  std::memcpy(&header, bytes.data() + kItemHeaderBytes, sizeof(header));
  const LongItemHeader good = header;
  const auto with = [&](auto spoil) {
    header = good;
    spoil(header);
    std::memcpy(bytes.data() + kItemHeaderBytes, &header, sizeof(header));
    return Judge(bytes);
  };
  CHECK(with([](LongItemHeader& h) { h.value_len = UINT32_MAX; }) == ItemVerdict::kTorn);
  CHECK(with([](LongItemHeader& h) { h.value_len = 602; }) == ItemVerdict::kTorn);
  CHECK(with([](LongItemHeader& h) { h.key_len = 0; }) == ItemVerdict::kTorn);
  CHECK(with([](LongItemHeader& h) { h.key_len = 4097; }) == ItemVerdict::kTorn);
  CHECK(with([](LongItemHeader& h) { h.key_len = UINT16_MAX; }) == ItemVerdict::kTorn);
  CHECK(with([](LongItemHeader& h) { h.flags = 8; }) == ItemVerdict::kTorn);
  CHECK(with([](LongItemHeader& h) { h.flags = 0xff; }) == ItemVerdict::kTorn);
  CHECK(with([](LongItemHeader&) {}) == ItemVerdict::kCurrent);
}

TEST_CASE("JudgeItem: an empty key or an unknown flag is torn, even under a right checksum") {
  Made made;
  made.key = "";
  made.value = std::string(600, 'v');
  made.long_form = true;
  CHECK(Judge(Make(made), Expect({})) == ItemVerdict::kTorn);
  made.flags = kItemHasExpiry;
  CHECK(Judge(Make(made), Expect({})) == ItemVerdict::kTorn);
  made = {};
  made.flags = 8;
  CHECK(Judge(Make(made)) == ItemVerdict::kTorn);
  made = {};
  made.key = std::string(4097, 'k');
  CHECK(Judge(Make(made), Expect({})) == ItemVerdict::kTorn);
}

TEST_CASE("JudgeItem: an item of another incarnation or another place is torn") {
  Made made;
  SECTION("incarnation") { made.incarnation = kIncarnation + 1; }
  SECTION("place") { made.location = kLocation + 8; }
  CHECK(Judge(Make(made)) == ItemVerdict::kTorn);
}

TEST_CASE("JudgeItem: a mixture of two versions of one item is torn, wherever it is cut") {
  Made older;
  older.value = std::string(40, 'a');
  Made newer = older;
  newer.version = kVersion + 1;
  SECTION("of the same value") {}
  SECTION("of another value") { newer.value = std::string(40, 'b'); }
  SECTION("of a shorter value") { newer.value = std::string(37, 'b'); }
  SECTION("of the long form") { newer.value = std::string(520, 'b'); }
  SECTION("of the short form, the older one of the long") {
    older.value = std::string(520, 'a');
    newer.value = std::string(511, 'b');
  }
  std::vector<std::byte> a = Make(older);
  std::vector<std::byte> b = Make(newer);
  a.resize(std::max(a.size(), b.size()));
  b.resize(a.size());
  for (size_t cut = 0; cut <= a.size(); ++cut) {
    for (const bool head_is_new : {false, true}) {
      std::vector<std::byte> mixed = head_is_new ? b : a;
      const std::vector<std::byte>& tail = head_is_new ? a : b;
      std::copy(tail.begin() + static_cast<ptrdiff_t>(cut), tail.end(),
                mixed.begin() + static_cast<ptrdiff_t>(cut));
      ItemView item;
      if (Judge(mixed, Expect(), item) != ItemVerdict::kCurrent) continue;
      const Made& whole = item.version == older.version ? older : newer;
      REQUIRE((item.version == whole.version && item.value == whole.value));
    }
  }
}

TEST_CASE(
    "JudgeItem: the version of a header that was read early does not fit a body that was read "
    "late") {
  Made made;
  std::vector<std::byte> bytes = Make(made);
  const uint64_t word = PackVersion(kVersion + 1, ItemState::kLive);
  std::memcpy(bytes.data(), &word, sizeof(word));
  CHECK(Judge(bytes) == ItemVerdict::kTorn);
}

TEST_CASE("JudgeItem: a held version accepts DEAD with exactly that version") {
  Made made;
  made.state = ItemState::kDead;
  CHECK(Judge(Make(made), Expect("the key", kVersion)) == ItemVerdict::kCurrent);
  CHECK(Judge(Make(made), Expect("the key", kVersion + 1)) == ItemVerdict::kDead);
  CHECK(Judge(Make(made), Expect("other", kVersion)) == ItemVerdict::kOtherKey);
  made.state = ItemState::kWriting;
  CHECK(Judge(Make(made), Expect("the key", kVersion)) == ItemVerdict::kWriting);
  made.state = ItemState::kLive;
  CHECK(Judge(Make(made), Expect("the key", kVersion)) == ItemVerdict::kCurrent);
  made.state = ItemState::kDead;
  made.version = 0;
  CHECK(Judge(Make(made), Expect("the key", 0)) == ItemVerdict::kDead);
}

TEST_CASE("JudgeItem: the item is filled on kCurrent only") {
  Made made;
  made.state = ItemState::kDead;
  ItemView item;
  item.version = 99;
  CHECK(Judge(Make(made), Expect(), item) == ItemVerdict::kDead);
  CHECK(item.version == 99);
  CHECK(item.key.empty());
}

TEST_CASE("JudgeItem: zeroes and random bytes are never current") {
  Random random(Seed());
  CHECK(Judge(std::vector<std::byte>(4096)) == ItemVerdict::kTorn);
  for (int i = 0; i < 100'000; ++i) {
    std::vector<std::byte> bytes(random.Uniform(200));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Next());
    if (bytes.size() >= kLongItemHeaderBytes && random.OneIn(2)) {  // past the first checks
      bytes[8] &= std::byte{0x80};
      bytes[16] = static_cast<std::byte>(random.Uniform(100));
      bytes[17] = std::byte{0};
      bytes[18] = static_cast<std::byte>(random.Uniform(8));
      bytes[21] = bytes[22] = bytes[23] = std::byte{0};
    }
    if (Judge(bytes, Expect({})) == ItemVerdict::kCurrent) FAIL("current after " << i << " tries");
  }
}

}  // namespace
}  // namespace kvd::test
