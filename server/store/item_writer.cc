#include "server/store/item_writer.h"

#include <cstring>
#include <span>

#include "common/base/checksum.h"
#include "common/base/planted_fault.h"
#include "server/store/region_writes.h"

namespace kvd {

void ItemWriter::SetState(RegionOffset at, uint64_t version, ItemState state) const {
  StoreWordRelease(region_->At(at), PackVersion(version, state));
  OrderStores();
}

void ItemWriter::MarkLive(RegionOffset at) const {
  SetState(at, VersionOf(HeaderAt(at).version_and_state), ItemState::kLive);
}

void ItemWriter::MarkDead(RegionOffset at) const {
  if (Planted("no DEAD mark")) return;
  SetState(at, VersionOf(HeaderAt(at).version_and_state), ItemState::kDead);
}

// The short form's lengths are part of the word with the checksum, which comes last.
void ItemWriter::WriteLengths(RegionOffset at, ItemShape shape, const ItemExtras& extras) const {
  if (shape.is_short()) return;
  const uint8_t flags = shape.flags();
  LongItemHeader header{};
  header.key_len = static_cast<uint16_t>(shape.key_len);
  header.flags = flags;
  header.value_len = (flags & kItemLongValue) == 0 ? static_cast<uint32_t>(shape.value_len) : 0;
  uint64_t word;
  std::memcpy(&word, &header, sizeof(word));
  StoreWord(region_->At(at) + kItemHeaderBytes, word);
  if (flags != 0) WriteOptionalWords(at, shape, extras);
}

void ItemWriter::WriteOptionalWords(RegionOffset at, ItemShape shape,
                                    const ItemExtras& extras) const {
  std::byte* to = region_->At(at) + kLongItemHeaderBytes;
  const auto put = [&to](uint8_t present, uint64_t word) {
    if (present == 0) return;
    StoreWord(to, word);
    to += sizeof(word);
  };
  put(shape.flags() & kItemHasExpiry, extras.expiry_unix_us);
  put(shape.flags() & kItemHasUserFlags, extras.user_flags);
  put(shape.flags() & kItemLongValue, shape.value_len);
}

void ItemWriter::WritePadding(RegionOffset at, ItemShape shape) const {
  static constexpr uint64_t kZero = 0;
  const uint64_t unpadded = shape.bytes_before_key() + shape.key_len + shape.value_len;
  StoreBytes(region_->At(at) + unpadded, &kZero, shape.item_bytes() - unpadded);
}

// Everything but the header's first two words and the value. Returns where the value belongs.
std::byte* ItemWriter::WriteHead(RegionOffset at, ItemShape shape, std::string_view key,
                                 const ItemExtras& extras) const {
  WriteLengths(at, shape, extras);
  std::byte* const to = region_->At(at) + shape.bytes_before_key();
  StoreBytes(to, key.data(), key.size());
  WritePadding(at, shape);
  return to + key.size();
}

// Over what lies in the region: it was just written, so it is in the cache if it fits.
void ItemWriter::WriteChecksum(RegionOffset at, ItemShape shape, uint64_t version) const {
  std::byte* const item = region_->At(at);
  const uint64_t word =
      ItemCheckWord(item + kItemHeaderBytes, shape.item_bytes() - kItemHeaderBytes,
                    region_->geometry().incarnation, at, version, shape.short_lengths());
  StoreWord(item + offsetof(ItemHeader, check_and_lengths), word);
  OrderStores();
}

[[gnu::flatten]] void ItemWriter::WriteNew(RegionOffset at, uint64_t version,
                                           const ItemContent& content) const {
  const ItemShape shape = content.shape();
  SetState(at, version, ItemState::kWriting);
  std::byte* const to = WriteHead(at, shape, content.key, content.extras);
  StoreBytes(to, content.value.data(), content.value.size());
  StoreBytes(to + content.value.size(), content.value_end.data(), content.value_end.size());
  WriteChecksum(at, shape, version);
}

bool ItemWriter::IsWhole(RegionOffset at, uint64_t occupied_bytes) const {
  ItemExpectation expected;
  expected.incarnation = region_->geometry().incarnation;
  expected.location = at;
  ItemView item;
  return JudgeItem(std::span<const std::byte>(region_->At(at), occupied_bytes), expected, item) !=
         ItemVerdict::kTorn;
}

void ItemWriter::CopyNew(RegionOffset to, RegionOffset from, uint64_t occupied_bytes) const {
  const uint64_t version = VersionOf(HeaderAt(from).version_and_state);
  SetState(to, version, ItemState::kWriting);
  if (!IsWhole(from, occupied_bytes)) [[unlikely]] {
    // With the checksum that it has: a new one would certify the damage.
    StoreBytes(region_->At(to) + sizeof(uint64_t), region_->At(from) + sizeof(uint64_t),
               occupied_bytes - sizeof(uint64_t));
    OrderStores();
    return;
  }
  const ItemShape shape = ShapeAt(from);
  StoreBytes(region_->At(to) + kItemHeaderBytes, region_->At(from) + kItemHeaderBytes,
             shape.item_bytes() - kItemHeaderBytes);
  WriteChecksum(to, shape, version);
}

// Of the long form, with a key of no bytes.
void ItemWriter::WriteNone(RegionOffset at) const {
  SetState(at, 0, ItemState::kWriting);
  StoreWord(region_->At(at) + offsetof(ItemHeader, check_and_lengths), 0);
  StoreWord(region_->At(at) + kItemHeaderBytes, 0);
  OrderStores();
}

// Version zero and DEAD until it is sealed: nobody knows the place, and a reader that knew what lay
// here before finds either that or something that does not verify.
std::byte* ItemWriter::Prepare(RegionOffset at, std::string_view key, uint64_t value_len,
                               const ItemExtras& extras) const {
  const ItemShape shape{key.size(), value_len, extras.flags()};
  SetState(at, 0, ItemState::kDead);
  StoreWord(region_->At(at) + offsetof(ItemHeader, check_and_lengths), shape.short_lengths());
  return WriteHead(at, shape, key, extras);
}

void ItemWriter::Seal(RegionOffset at, uint64_t version) const {
  SetState(at, version, ItemState::kWriting);
  WriteChecksum(at, ShapeAt(at), version);
}

[[gnu::flatten]] void ItemWriter::Overwrite(RegionOffset at, uint64_t version,
                                            std::string_view value,
                                            const ItemExtras& extras) const {
  const std::string_view key = KeyAt(at);
  const ItemShape shape{key.size(), value.size(), extras.flags()};
  SetState(at, version, ItemState::kWriting);
  WriteLengths(at, shape, extras);
  StoreBytes(region_->At(at) + shape.bytes_before_key() + key.size(), value.data(), value.size());
  WritePadding(at, shape);
  WriteChecksum(at, shape, version);
  SetState(at, version, ItemState::kLive);
}

void ItemWriter::OverwriteExtras(RegionOffset at, uint64_t version,
                                 const ItemExtras& extras) const {
  const ItemShape shape = ShapeAt(at);
  SetState(at, version, ItemState::kWriting);
  WriteOptionalWords(at, shape, extras);
  WriteChecksum(at, shape, version);
  SetState(at, version, ItemState::kLive);
}

ItemExtras ItemWriter::ExtrasAt(RegionOffset at) const {
  const uint8_t flags = FlagsAt(at);
  ItemExtras extras;
  if ((flags & kItemHasExpiry) != 0) extras.expiry_unix_us = WordOf(at, 0);
  if ((flags & kItemHasUserFlags) != 0) {
    extras.user_flags = static_cast<uint32_t>(WordOf(at, (flags & kItemHasExpiry) != 0 ? 1 : 0));
  }
  return extras;
}

ItemView ItemWriter::Read(RegionOffset at) const {
  ItemView item;
  item.version = VersionOf(HeaderAt(at).version_and_state);
  item.key = KeyAt(at);
  item.value = std::string_view(item.key.data() + item.key.size(), ShapeAt(at).value_len);
  if (FlagsAt(at) != 0) [[unlikely]] {
    const ItemExtras extras = ExtrasAt(at);
    item.expiry_unix_us = extras.expiry_unix_us;
    item.user_flags = extras.user_flags;
  }
  return item;
}

}  // namespace kvd
