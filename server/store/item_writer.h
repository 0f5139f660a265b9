// Writing items into the region, step by step: the writer's half of what JudgeItem
// (common/protocol/judge_item.h) decides. Every step ends with OrderStores(), so steps are seen in
// the order in which they are called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/layout/item.h"
#include "common/layout/slot.h"
#include "common/protocol/judge_item.h"
#include "server/store/region.h"

namespace kvd {

// Lengths of an item's parts, and what follows from them.
struct ItemShape {
  uint64_t key_len = 0;
  uint64_t value_len = 0;
  uint8_t extras = 0;  // kItemHasExpiry, kItemHasUserFlags

  uint8_t flags() const {
    return value_len > UINT32_MAX ? static_cast<uint8_t>(extras | kItemLongValue) : extras;
  }
  bool is_short() const { return IsShortItem(flags(), key_len, value_len); }
  uint64_t short_lengths() const { return is_short() ? PackShortLengths(key_len, value_len) : 0; }
  uint64_t bytes_before_key() const { return BytesBeforeKey(flags(), key_len, value_len); }
  uint64_t item_bytes() const { return ItemBytes(flags(), key_len, value_len); }
  uint64_t occupied_bytes() const { return RoundUpItemSize(item_bytes()); }
};

// What an item may carry besides key and value.
struct ItemExtras {
  uint64_t expiry_unix_us = 0;  // 0: never
  uint32_t user_flags = 0;      // 0: none

  uint8_t flags() const {
    return static_cast<uint8_t>((expiry_unix_us != 0 ? kItemHasExpiry : 0) |
                                (user_flags != 0 ? kItemHasUserFlags : 0));
  }
};

// An item as it is to be written.
struct ItemContent {
  std::string_view key;
  std::string_view value;
  std::string_view value_end = {};  // what follows `value`, of the same value
  ItemExtras extras = {};

  ItemShape shape() const { return {key.size(), value.size() + value_end.size(), extras.flags()}; }
};

// Only the shard's owner writes its items, so it may also read them as plain memory.
class ItemWriter {
 public:
  explicit ItemWriter(const Region& region) : region_(&region) {}

  // The item at `at` is whole and WRITING.
  void WriteNew(RegionOffset at, uint64_t version, const ItemContent& content) const;

  // The item at `to` is a copy of the one at `from`, which occupies so many bytes, with its
  // version, and WRITING. What is not whole is not whole in its copy either.
  void CopyNew(RegionOffset to, RegionOffset from, uint64_t occupied_bytes) const;

  // What is at `at` is no item, and never verifies: kItemBytesMin, WRITING.
  void WriteNone(RegionOffset at) const;

  // Whether the item at `at`, which occupies so many bytes, is as it was written, whatever its
  // state. False: the memory has changed by itself, and nothing in it is to be relied on, lengths
  // neither.
  bool IsWhole(RegionOffset at, uint64_t occupied_bytes) const;

  // In two halves, for a value that comes from elsewhere. Prepare leaves an item that is DEAD,
  // complete but for its value, and returns where the value belongs. Seal makes it whole and
  // WRITING.
  std::byte* Prepare(RegionOffset at, std::string_view key, uint64_t value_len,
                     const ItemExtras& extras = {}) const;
  void Seal(RegionOffset at, uint64_t version) const;

  void MarkLive(RegionOffset at) const;
  void MarkDead(RegionOffset at) const;

  // Replaces value and extras of the LIVE item at `at`, of the same occupied size and flags (and so
  // of the same form): WRITING under the new version, then what is new and the checksum, then LIVE.
  // `value` does not lie in the item.
  void Overwrite(RegionOffset at, uint64_t version, std::string_view value,
                 const ItemExtras& extras = {}) const;

  // The same without touching the value.
  void OverwriteExtras(RegionOffset at, uint64_t version, const ItemExtras& extras) const;

  // The item at `at`, whatever its state; views into the region.
  ItemView Read(RegionOffset at) const;
  uint64_t VersionAt(RegionOffset at) const { return VersionOf(HeaderAt(at).version_and_state); }
  uint8_t FlagsAt(RegionOffset at) const { return IsShortAt(at) ? 0 : LongHeaderAt(at).flags; }
  ItemShape ShapeAt(RegionOffset at) const {
    const uint64_t word = HeaderAt(at).check_and_lengths;
    if (ShortKeyBytes(word) != 0) return {ShortKeyBytes(word), ShortValueBytes(word), 0};
    const LongItemHeader& header = LongHeaderAt(at);
    ItemShape shape{header.key_len, header.value_len, 0};
    if (header.flags != 0) [[unlikely]] {
      shape.extras = header.flags & (kItemHasExpiry | kItemHasUserFlags);
      if ((header.flags & kItemLongValue) != 0) {
        shape.value_len = WordOf(at, OptionalBytes(shape.extras) / sizeof(uint64_t));
      }
    }
    return shape;
  }
  std::string_view KeyAt(RegionOffset at) const {
    const auto* const item = reinterpret_cast<const char*>(region_->At(at));
    const uint64_t short_key_len = ShortKeyBytes(HeaderAt(at).check_and_lengths);
    if (short_key_len != 0) return {item + kItemHeaderBytes, short_key_len};
    const LongItemHeader& header = LongHeaderAt(at);
    return {item + kLongItemHeaderBytes + (header.flags == 0 ? 0 : OptionalBytes(header.flags)),
            header.key_len};
  }
  ItemExtras ExtrasAt(RegionOffset at) const;

  // The same of an item that may be damaged: nothing is read or said that its slot has no room for.
  // Empty: its lengths do not fit in.
  std::string_view KeyOf(Slot slot) const {
    const std::string_view key = KeyAt(LocationOf(slot));
    const char* const end =
        reinterpret_cast<const char*>(region_->At(LocationOf(slot))) + ItemBytesOf(slot);
    return key.data() + key.size() <= end ? key : std::string_view();
  }
  // Where the lengths do not agree with the slot, those of a value that fills it.
  ItemShape ShapeOf(Slot slot) const {
    if (HasRoomForWords(slot)) [[likely]] {
      const ItemShape shape = ShapeAt(LocationOf(slot));
      if (shape.occupied_bytes() == ItemBytesOf(slot)) [[likely]]
        return shape;
    }
    return {0, ItemBytesOf(slot) - kItemHeaderBytes, 0};
  }
  ItemExtras ExtrasOf(Slot slot) const {
    return HasRoomForWords(slot) ? ExtrasAt(LocationOf(slot)) : ItemExtras();
  }
  // Whether it has an expiry and that is not after `now_unix_us`.
  bool HasLapsed(Slot slot, uint64_t now_unix_us) const {
    return (FlagsAt(LocationOf(slot)) & kItemHasExpiry) != 0 && HasRoomForWords(slot) &&
           WordOf(LocationOf(slot), 0) <= now_unix_us;
  }

 private:
  bool HasRoomForWords(Slot slot) const {
    const uint8_t flags = FlagsAt(LocationOf(slot));
    return flags == 0 || kLongItemHeaderBytes + OptionalBytes(flags) <= ItemBytesOf(slot);
  }
  void SetState(RegionOffset at, uint64_t version, ItemState state) const;
  std::byte* WriteHead(RegionOffset at, ItemShape shape, std::string_view key,
                       const ItemExtras& extras) const;
  void WriteLengths(RegionOffset at, ItemShape shape, const ItemExtras& extras) const;
  void WriteOptionalWords(RegionOffset at, ItemShape shape, const ItemExtras& extras) const;
  void WritePadding(RegionOffset at, ItemShape shape) const;
  void WriteChecksum(RegionOffset at, ItemShape shape, uint64_t version) const;
  const ItemHeader& HeaderAt(RegionOffset at) const {
    return *reinterpret_cast<const ItemHeader*>(region_->At(at));
  }
  const LongItemHeader& LongHeaderAt(RegionOffset at) const {
    return *reinterpret_cast<const LongItemHeader*>(region_->At(at) + kItemHeaderBytes);
  }
  bool IsShortAt(RegionOffset at) const {
    return ShortKeyBytes(HeaderAt(at).check_and_lengths) != 0;
  }
  // The optional word number `index` of those that are there.
  uint64_t WordOf(RegionOffset at, uint32_t index) const {
    return *reinterpret_cast<const uint64_t*>(region_->At(at) + kLongItemHeaderBytes +
                                              index * sizeof(uint64_t));
  }

  const Region* region_;
};

}  // namespace kvd
