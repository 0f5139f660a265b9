#include "tests/golden/golden_region_cases.h"

#include <cstring>
#include <optional>
#include <utility>

#include "common/base/hash.h"
#include "common/layout/bucket.h"
#include "common/layout/checked_word.h"
#include "common/layout/item.h"
#include "common/layout/superblock.h"
#include "common/protocol/geometry.h"
#include "tests/support/encode_item.h"

namespace kvd::test {
namespace {

// --- items ---

struct ItemSpec {
  std::string key;
  std::string value;
  ItemState state = ItemState::kLive;
  uint64_t version = 0;
  std::optional<uint64_t> expiry_unix_us = std::nullopt;
  std::optional<uint32_t> user_flags = std::nullopt;
  bool long_value = false;

  uint8_t flags() const {
    return static_cast<uint8_t>((expiry_unix_us ? kItemHasExpiry : 0) |
                                (user_flags ? kItemHasUserFlags : 0) |
                                (long_value ? kItemLongValue : 0));
  }
  uint64_t bytes() const { return ItemBytes(flags(), key.size(), value.size()); }
};

const char* NameOf(ItemState state) {
  switch (state) {
    case ItemState::kDead:
      return "dead";
    case ItemState::kWriting:
      return "writing";
    case ItemState::kLive:
      return "live";
  }
  return "?";
}

std::string Encode(const ItemSpec& spec, RegionOffset location) {
  return EncodeItem({.key = spec.key,
                     .value = spec.value,
                     .state = spec.state,
                     .version = spec.version,
                     .flags = spec.flags(),
                     .expiry_unix_us = spec.expiry_unix_us.value_or(0),
                     .user_flags = spec.user_flags.value_or(0),
                     .incarnation = kIncarnation,
                     .location = location});
}

Json Describe(const ItemSpec& spec) {
  Json item;
  item["state"] = NameOf(spec.state);
  item["version"] = spec.version;
  if (spec.expiry_unix_us) item["expiry_unix_us"] = *spec.expiry_unix_us;
  if (spec.user_flags) item["user_flags"] = *spec.user_flags;
  item["key"] = spec.key;
  item["value"] = spec.value;
  return item;
}

GoldenCase ItemCase(std::string name, const ItemSpec& spec) {
  constexpr RegionOffset kLocation{0x123458};
  return {std::move(name),
          "item",
          {{"incarnation", kIncarnation}, {"location", ToBytes(kLocation)}},
          Describe(spec),
          Encode(spec, kLocation)};
}

void AddItems(std::vector<GoldenCase>& cases) {
  const std::string text = "The quick brown fox jumps over the lazy dog. ";
  std::string long_text;
  while (long_text.size() < 3000) long_text += std::to_string(long_text.size()) + " " + text;
  cases.push_back(ItemCase(
      "item_plain", {.key = "user:1000", .value = text, .version = 1'700'000'000'000'000 << 10}));
  cases.push_back(ItemCase("item_smallest", {.key = "k", .value = "", .version = 1}));
  cases.push_back(ItemCase("item_padded", {.key = "sixteen bytes...", .value = "v", .version = 2}));
  cases.push_back(ItemCase(
      "item_expiry",
      {.key = "user:1000", .value = text, .version = 3, .expiry_unix_us = 1'893'456'000'000'000}));
  cases.push_back(
      ItemCase("item_user_flags",
               {.key = "user:1000", .value = text, .version = 4, .user_flags = 0xcafe0001}));
  cases.push_back(ItemCase("item_long_value",
                           {.key = "user:1000", .value = text, .version = 5, .long_value = true}));
  cases.push_back(ItemCase("item_all_words", {.key = "user:1000",
                                              .value = text + text + text + text,
                                              .version = kVersionMax,
                                              .expiry_unix_us = 1,
                                              .user_flags = 0xffffffff,
                                              .long_value = true}));
  cases.push_back(ItemCase(
      "item_dead", {.key = "gone", .value = "old", .state = ItemState::kDead, .version = 6}));
  cases.push_back(
      ItemCase("item_writing",
               {.key = "coming", .value = "new", .state = ItemState::kWriting, .version = 7}));
  // The longest of the short form, and those next to it.
  cases.push_back(ItemCase(
      "item_short_longest",
      {.key = std::string(127, 'k'), .value = long_text.substr(0, 511), .version = kVersionMax}));
  cases.push_back(
      ItemCase("item_key_128", {.key = std::string(128, 'k'), .value = "", .version = 10}));
  cases.push_back(
      ItemCase("item_512", {.key = "k", .value = long_text.substr(0, 512), .version = 11}));
  cases.push_back(
      ItemCase("item_400", {.key = "key", .value = long_text.substr(0, 400), .version = 8}));
  cases.push_back(
      ItemCase("item_3000", {.key = "key", .value = long_text.substr(0, 3000), .version = 9}));
}

// --- region ---

void AddRegionHead(std::vector<GoldenCase>& cases) {
  Superblock superblock{};
  RegionIdentity& identity = superblock.identity;
  identity.magic = kSuperblockMagic;
  identity.layout_version = kLayoutVersion;
  identity.incarnation = kIncarnation;
  identity.region_bytes = kRegionBytes;
  identity.bucket_bytes = kBucketBytes;
  identity.shard_count = kShards;
  identity.directory_offset = sizeof(Superblock);
  identity.directory_entries = kDirectoryEntries;
  identity.segment_bytes = kSegmentBytes;
  identity.created_unix_us = 1'700'000'000'123'456;
  identity.checksum = Checksum64(&identity, offsetof(RegionIdentity, checksum), kSuperblockMagic);
  superblock.lifeline.word = 4711;
  superblock.bucket_counts[0] =
      PackCheckedWord(CheckedWordKind::kBucketCount, 0, kIncarnation, 1500);
  superblock.bucket_counts[1] =
      PackCheckedWord(CheckedWordKind::kBucketCount, 1, kIncarnation, 1024);
  std::string bytes = BytesOf(superblock);
  Json directory = Json::array();
  for (uint32_t i = 0; i < kDirectoryEntries; ++i) {
    const bool set = i < 3;
    const uint32_t segment = 1 + 2 * i;
    bytes +=
        BytesOf(set ? PackCheckedWord(CheckedWordKind::kDirectoryEntry, i, kIncarnation, segment)
                    : uint64_t{0});
    directory.push_back(set ? Json(segment) : Json(nullptr));
  }
  const Json content = {{"layout_version", kLayoutVersion},
                        {"feature_bits", 0},
                        {"incarnation", kIncarnation},
                        {"region_bytes", kRegionBytes},
                        {"bucket_bytes", kBucketBytes},
                        {"shard_count", kShards},
                        {"directory_offset", sizeof(Superblock)},
                        {"directory_entries", kDirectoryEntries},
                        {"segment_bytes", kSegmentBytes},
                        {"created_unix_us", 1'700'000'000'123'456},
                        {"lifeline", 4711},
                        {"bucket_counts", {1500, 1024}},
                        {"directory", directory}};
  cases.push_back({"region_head", "region_head", Json::object(), content, bytes});
}

Json DescribeSlots(const BucketHeader& header) {
  Json slots = Json::array();
  for (const Slot slot : header.slots) {
    slots.push_back(slot == kEmptySlot ? Json(nullptr)
                                       : Json({{"tag", TagOf(slot)},
                                               {"item_bytes", ItemBytesOf(slot)},
                                               {"location", ToBytes(LocationOf(slot))}}));
  }
  return slots;
}

void AddBucket(std::vector<GoldenCase>& cases) {
  constexpr uint32_t kShard = 1;
  constexpr BucketIndex kBucket{1029};
  constexpr uint64_t kAt = 5 * kSegmentBytes + 5 * kBucketBytes;
  constexpr RegionOffset kOverflow{0x3f00080};
  const ItemSpec items[] = {
      {.key = "apple", .value = "red", .version = 1001},
      {.key = "pear", .value = "green", .version = 1002, .user_flags = 7},
      {.key = "quince",
       .value = std::string(100, 'q'),
       .state = ItemState::kWriting,
       .version = 1003},
  };
  BucketHeader header{};
  header.version = 42;
  header.link = PackLink(11, kOverflow, ChainFilterBit(0) | ChainFilterBit(0x123));
  std::string local(kBucketBytes - kBucketHeaderBytes, '\0');
  Json described = Json::array();
  uint64_t at = kBucketHeaderBytes;
  uint32_t index = 0;
  for (const ItemSpec& item : items) {
    const RegionOffset location{kAt + at};
    const uint64_t hash = HashKey(item.key, Mix64(kIncarnation ^ 0x68617368));
    header.slots[index] = PackSlot(SlotTag(hash), item.bytes(), location);
    local.replace(at - kBucketHeaderBytes, item.bytes(), Encode(item, location));
    Json one = Describe(item);
    one["slot"] = index;
    described.push_back(one);
    at += RoundUpItemSize(item.bytes());
    index += 2;  // with empty slots between them
  }
  header.slots[15] = PackSlot(0xfff, 5000, RegionOffset{0x2000000});  // in the heap
  header.checksum =
      HeaderChecksum(header, HeaderSeed(kIncarnation, kShard, kBucket, RegionOffset{0}));
  cases.push_back({"bucket",
                   "bucket",
                   {{"incarnation", kIncarnation},
                    {"shard", kShard},
                    {"bucket", ToNumber(kBucket)},
                    {"offset", kAt}},
                   {{"version", 42},
                    {"chain_filter", 9},
                    {"depth", 11},
                    {"overflow", ToBytes(kOverflow)},
                    {"slots", DescribeSlots(header)},
                    {"local_items", described}},
                   BytesOf(header) + local});

  BucketHeader overflow{};
  overflow.version = 42;
  overflow.link = PackLink(0, RegionOffset{0});
  overflow.slots[0] = PackSlot(0, 2048, RegionOffset{0x2100000});
  overflow.slots[7] = PackSlot(0x123, uint64_t{1} << 20, RegionOffset{0x2200000});
  overflow.checksum =
      HeaderChecksum(overflow, HeaderSeed(kIncarnation, kShard, kBucket, kOverflow));
  cases.push_back({"overflow_header",
                   "overflow_header",
                   {{"incarnation", kIncarnation},
                    {"shard", kShard},
                    {"bucket", ToNumber(kBucket)},
                    {"offset", ToBytes(kOverflow)}},
                   {{"version", 42},
                    {"chain_filter", 0},
                    {"depth", 0},
                    {"overflow", 0},
                    {"slots", DescribeSlots(overflow)}},
                   BytesOf(overflow)});
}

}  // namespace

void AddRegionCases(std::vector<GoldenCase>& cases) {
  AddRegionHead(cases);
  AddBucket(cases);
  AddItems(cases);
}

}  // namespace kvd::test
