// The one function that decides whether an item's bytes are returned to anybody. Every path of every reader ends here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/planted_fault.h"
#include "common/layout/item.h"

namespace kvd {

enum class ItemVerdict : uint8_t {
  kCurrent,   // whole, and LIVE in the header that was read: the value of `key` at that moment
  kOtherKey,  // whole and LIVE, but another key's: the slot's tag matched by chance, or the memory was reused
  kDead,      // replaced, deleted or moved since its location was learned: look in the index again
  kWriting,   // not yet acknowledged, or being overwritten: look again
  kTorn,      // the bytes are not one whole item of this place: look again; after a few times ask the server
  kExpired,   // whole, LIVE and of `key`, and its time has passed: the key has no value
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
  const Clock* clock = nullptr;  // the server's, as the reader knows it: judges expiry; null: expiry is not judged
};

namespace internal {

// What the header of an item of the long form says.
struct LongForm {
  uint64_t key_at = 0;
  uint64_t key_len = 0;
  uint64_t value_len = 0;
  uint64_t expiry_unix_us = 0;
  uint64_t user_flags = 0;
};

// False: it does not fit into `copy`, or is none that is ever written, as that of an item for which the short form would do.
[[gnu::noinline]] inline bool TakeLongForm(std::span<const std::byte> copy, LongForm& form) {
  if (copy.size() < kLongItemHeaderBytes) return false;
  LongItemHeader header;
  std::memcpy(&header, copy.data() + kItemHeaderBytes, sizeof(header));
  if ((header.flags & ~kItemFlagsKnown) != 0) return false;
  if (header.key_len - 1u >= kKeyBytesMax) return false;
  if (IsShortItem(header.flags, header.key_len, header.value_len)) return false;
  const uint64_t option_bytes = OptionalBytes(header.flags);
  if (copy.size() < kLongItemHeaderBytes + option_bytes) return false;
  const std::byte* cursor = copy.data() + kLongItemHeaderBytes;
  const auto take = [&cursor](uint8_t present, uint64_t& word) {
    if (present == 0) return;
    std::memcpy(&word, cursor, sizeof(word));
    cursor += sizeof(word);
  };
  form.key_at = kLongItemHeaderBytes + option_bytes;
  form.key_len = header.key_len;
  form.value_len = header.value_len;
  take(header.flags & kItemHasExpiry, form.expiry_unix_us);
  take(header.flags & kItemHasUserFlags, form.user_flags);
  take(header.flags & kItemLongValue, form.value_len);
  return form.value_len <= copy.size();
}

// Equality of two keys of the same length; short ones without a call.
inline bool SameBytes(const char* a, const char* b, uint64_t bytes) {
  if (bytes < 8 || bytes > 16) return std::memcmp(a, b, bytes) == 0;
  uint64_t first[2];
  uint64_t last[2];
  std::memcpy(&first[0], a, 8);
  std::memcpy(&first[1], b, 8);
  std::memcpy(&last[0], a + bytes - 8, 8);
  std::memcpy(&last[1], b + bytes - 8, 8);
  return ((first[0] ^ first[1]) | (last[0] ^ last[1])) == 0;
}

}  // namespace internal

// Judges `copy`: private bytes, taken once from region memory at `expected.location`, at least as long as the item
// claims to be. On kCurrent (only then) `item` is filled with views into `copy`. Touches nothing else; never blocks;
// any thread. Nothing in `copy` is trusted: every length is bounded by copy.size() before it is used.
inline ItemVerdict JudgeItem(std::span<const std::byte> copy, const ItemExpectation& expected, ItemView& item) {
  if (copy.size() < kItemHeaderBytes) return ItemVerdict::kTorn;
  // Word by word: a wider copy of the header would be stored and loaded again.
  uint64_t words[2];
  std::memcpy(words, copy.data(), sizeof(words));
  [[maybe_unused]] uint64_t short_lengths = words[1] & kShortLengthsMask;
  uint64_t key_at = kItemHeaderBytes;
  uint64_t key_len = ShortKeyBytes(words[1]);
  uint64_t value_len = ShortValueBytes(words[1]);
  uint64_t expiry_unix_us = 0;
  uint64_t user_flags = 0;
  if (key_len == 0) [[unlikely]] {
    internal::LongForm form;
    if (!internal::TakeLongForm(copy, form)) return ItemVerdict::kTorn;
    short_lengths = 0;
    key_at = form.key_at;
    key_len = form.key_len;
    value_len = form.value_len;
    expiry_unix_us = form.expiry_unix_us;
    user_flags = form.user_flags;
  }
  const uint64_t item_bytes = (key_at + key_len + value_len + 7) & ~uint64_t{7};
  if (item_bytes > copy.size()) return ItemVerdict::kTorn;

  const uint64_t version = VersionOf(words[0]);
  if (!Planted("no checksum") &&
      ItemCheckWord(copy.data() + kItemHeaderBytes, item_bytes - kItemHeaderBytes, expected.incarnation,
                    expected.location, version, short_lengths) != words[1]) {
    return ItemVerdict::kTorn;
  }
  const uint32_t state = StateBitsOf(words[0]);
  if (state != static_cast<uint32_t>(ItemState::kLive)) [[unlikely]] {
    if (state == static_cast<uint32_t>(ItemState::kWriting)) return ItemVerdict::kWriting;
    if (state != static_cast<uint32_t>(ItemState::kDead)) return ItemVerdict::kTorn;
    if (expected.held_version == 0 || expected.held_version != version) return ItemVerdict::kDead;
  }
  const char* const key = reinterpret_cast<const char*>(copy.data()) + key_at;
  if (!expected.key.empty() &&
      (key_len != expected.key.size() || !internal::SameBytes(key, expected.key.data(), key_len))) {
    return ItemVerdict::kOtherKey;
  }
  if (expiry_unix_us != 0 && expected.clock != nullptr) [[unlikely]] {
    const int64_t now_us = expected.clock->NowUnixUs();
    if (now_us > 0 && expiry_unix_us <= static_cast<uint64_t>(now_us)) return ItemVerdict::kExpired;
  }
  item.version = version;
  item.key = std::string_view(key, key_len);
  item.value = std::string_view(key + key_len, value_len);
  item.expiry_unix_us = expiry_unix_us;
  item.user_flags = static_cast<uint32_t>(user_flags);
  return ItemVerdict::kCurrent;
}

}  // namespace kvd
