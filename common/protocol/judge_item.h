// The one function that decides whether an item's bytes are returned to anybody. Every path of every reader ends here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "common/base/checksum.h"
#include "common/layout/item.h"

namespace kvd {

enum class ItemVerdict : uint8_t {
  kCurrent,   // whole, and LIVE in the header that was read: the value of `key` at that moment
  kOtherKey,  // whole and LIVE, but another key's: the slot's tag matched by chance, or the memory was reused
  kDead,      // replaced, deleted or moved since its location was learned: look in the index again
  kWriting,   // not yet acknowledged, or being overwritten: look again
  kTorn,      // the bytes are not one whole item of this place: look again; after a few times ask the server
};

// An item's fields, pointing into the bytes that were judged.
struct ItemView {
  uint64_t version = 0;
  std::string_view key;
  std::string_view value;
  uint64_t expiry_unix_us = 0;  // 0: never
  uint32_t user_flags = 0;
};

// What the caller expects of the item.
struct ItemExpectation {
  uint64_t incarnation = 0;
  RegionOffset location{};    // where the bytes were read
  std::string_view key;       // empty: any key (iteration)
  uint64_t held_version = 0;  // not 0: the server holds this version for us, so DEAD is as good as LIVE
};

// Judges `copy`: private bytes, taken once from region memory at `expected.location`, at least as long as the item
// claims to be. On kCurrent (only then) `item` is filled with views into `copy`. Touches nothing else; never blocks;
// any thread. Nothing in `copy` is trusted: every length is bounded by copy.size() before it is used.
inline ItemVerdict JudgeItem(std::span<const std::byte> copy, const ItemExpectation& expected, ItemView& item) {
  if (copy.size() < kItemHeaderBytes) return ItemVerdict::kTorn;
  ItemHeader header;
  std::memcpy(&header, copy.data(), sizeof(header));
  if ((header.flags & ~kItemFlagsKnown) != 0 || header.key_len == 0 || header.key_len > kKeyBytesMax) {
    return ItemVerdict::kTorn;
  }
  const char* cursor = reinterpret_cast<const char*>(copy.data()) + kItemHeaderBytes;
  uint64_t value_len = header.value_len;
  uint64_t expiry = 0;
  uint64_t user_flags = 0;
  if (header.flags != 0) {
    if (copy.size() < kItemHeaderBytes + OptionalBytes(header.flags)) return ItemVerdict::kTorn;
    const auto take = [&cursor](uint8_t present, uint64_t& word) {
      if (present == 0) return;
      std::memcpy(&word, cursor, sizeof(word));
      cursor += sizeof(word);
    };
    take(header.flags & kItemHasExpiry, expiry);
    take(header.flags & kItemHasUserFlags, user_flags);
    take(header.flags & kItemLongValue, value_len);
    if (value_len > copy.size()) return ItemVerdict::kTorn;
  }
  const uint64_t item_bytes = ItemBytes(header.flags, header.key_len, value_len);
  if (item_bytes > copy.size()) return ItemVerdict::kTorn;

  const uint64_t version = VersionOf(header.version_and_state);
#if !defined(KVD_CANARY_SKIP_CHECKSUM)
  const uint64_t seed = ItemSeed(expected.incarnation, expected.location, version);
  if (Checksum64(copy.data() + kItemChecksumFrom, item_bytes - kItemChecksumFrom, seed) != header.checksum) {
    return ItemVerdict::kTorn;
  }
#endif
  const uint32_t state = StateBitsOf(header.version_and_state);
  if (state != static_cast<uint32_t>(ItemState::kLive)) {
    if (state == static_cast<uint32_t>(ItemState::kWriting)) return ItemVerdict::kWriting;
    if (state != static_cast<uint32_t>(ItemState::kDead)) return ItemVerdict::kTorn;
    if (expected.held_version == 0 || expected.held_version != version) return ItemVerdict::kDead;
  }
  const std::string_view key(cursor, header.key_len);
  if (!expected.key.empty() && key != expected.key) return ItemVerdict::kOtherKey;
  item.version = version;
  item.key = key;
  item.value = std::string_view(cursor + header.key_len, value_len);
  item.expiry_unix_us = expiry;
  item.user_flags = static_cast<uint32_t>(user_flags);
  return ItemVerdict::kCurrent;
}

}  // namespace kvd
