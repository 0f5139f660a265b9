// The bytes of an item as docs/formats.md describes them, made without the store.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "common/layout/item.h"

namespace kvd::test {

struct ItemToEncode {
  std::string_view key;
  std::string_view value;
  ItemState state = ItemState::kLive;
  uint64_t version = 0;
  uint8_t flags = 0;
  uint64_t expiry_unix_us = 0;  // these two: only with their flags
  uint64_t user_flags = 0;
  uint64_t incarnation = 0;
  RegionOffset location{};
  bool long_form = false;  // even where the short one would do, as nobody may write it
};

inline std::string EncodeItem(const ItemToEncode& item) {
  std::string body;
  const auto put = [&body](const auto& object) {
    body.append(reinterpret_cast<const char*>(&object), sizeof(object));
  };
  const bool is_short =
      !item.long_form && IsShortItem(item.flags, item.key.size(), item.value.size());
  if (!is_short) {
    LongItemHeader header{};
    header.key_len = static_cast<uint16_t>(item.key.size());
    header.flags = item.flags;
    if ((item.flags & kItemLongValue) == 0) {
      header.value_len = static_cast<uint32_t>(item.value.size());
    }
    put(header);
    if ((item.flags & kItemHasExpiry) != 0) put(item.expiry_unix_us);
    if ((item.flags & kItemHasUserFlags) != 0) put(item.user_flags);
    if ((item.flags & kItemLongValue) != 0) put(uint64_t{item.value.size()});
  }
  body.append(item.key).append(item.value);
  body.resize((body.size() + 7) / 8 * 8);
  ItemHeader header{};
  header.version_and_state = PackVersion(item.version, item.state);
  header.check_and_lengths =
      ItemCheckWord(body.data(), body.size(), item.incarnation, item.location, item.version,
                    is_short ? PackShortLengths(item.key.size(), item.value.size()) : 0);
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + body;
}

}  // namespace kvd::test
