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

  uint8_t flags() const { return value_len > UINT32_MAX ? kItemLongValue : uint8_t{0}; }
  uint64_t item_bytes() const { return ItemBytes(flags(), key_len, value_len); }
  uint64_t occupied_bytes() const { return RoundUpItemSize(item_bytes()); }
};

// Only the shard's owner writes its items, so it may also read them as plain memory.
class ItemWriter {
 public:
  explicit ItemWriter(const Region& region) : region_(&region) {}

  // The item at `at` is whole and WRITING.
  void WriteNew(RegionOffset at, uint64_t version, std::string_view key,
                std::string_view value) const;

  // The item at `to` is a copy of the one at `from`, with its version, and WRITING.
  void CopyNew(RegionOffset to, RegionOffset from) const;

  // In two halves, for a value that comes from elsewhere. Prepare leaves an item that is DEAD,
  // complete but for its value, and returns where the value belongs. Seal makes it whole and
  // WRITING.
  std::byte* Prepare(RegionOffset at, std::string_view key, uint64_t value_len) const;
  void Seal(RegionOffset at, uint64_t version) const;

  void MarkLive(RegionOffset at) const;
  void MarkDead(RegionOffset at) const;

  // Replaces the value of the LIVE item at `at`, of the same occupied size: WRITING under the new
  // version, then the new value and its checksum, then LIVE.
  void Overwrite(RegionOffset at, uint64_t version, std::string_view value) const;

  // The item at `at`, whatever its state; views into the region.
  ItemView Read(RegionOffset at) const;
  ItemShape ShapeAt(RegionOffset at) const;
  std::string_view KeyAt(RegionOffset at) const;

 private:
  void SetState(RegionOffset at, uint64_t version, ItemState state) const;
  std::byte* WriteHead(RegionOffset at, ItemShape shape, std::string_view key) const;
  void WriteLengths(RegionOffset at, ItemShape shape) const;
  void WritePadding(RegionOffset at, ItemShape shape) const;
  void WriteChecksum(RegionOffset at, ItemShape shape, uint64_t version) const;
  const ItemHeader& HeaderAt(RegionOffset at) const {
    return *reinterpret_cast<const ItemHeader*>(region_->At(at));
  }

  const Region* region_;
};

}  // namespace kvd
