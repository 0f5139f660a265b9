// Items whose memory is kept for a reader although they may be replaced or deleted meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "common/layout/slot.h"

namespace kvd {

class HeldItems {
 public:
  struct Held {
    Slot slot = kEmptySlot;
    uint32_t holders = 0;
    bool left =
        false;  // no slot of the index names it any more: its memory is free once nobody holds it
  };

  bool empty() const { return held_.empty(); }
  bool Contains(RegionOffset location) const { return held_.count(ToBytes(location)) != 0; }

  void Hold(Slot slot);

  // One holder less. The item's slot if that was the last one and the item had left the index: its
  // memory is free now. Nothing for an item that is not held.
  std::optional<Slot> Release(Slot slot);

  // The index no longer names `slot`. True if it is held, and so must not be freed now.
  bool Leave(Slot slot);

  // Whether any lies in [begin, end).
  bool AnyIn(RegionOffset begin, RegionOffset end) const {
    const auto first = held_.lower_bound(ToBytes(begin));
    return first != held_.end() && first->first < ToBytes(end);
  }

  // Those at [begin, end) that have left the index, in order of address.
  template <typename Visit>
  void ForEachLeft(RegionOffset begin, RegionOffset end, Visit visit) const {
    for (auto it = held_.lower_bound(ToBytes(begin)); it != held_.end() && it->first < ToBytes(end);
         ++it) {
      if (it->second.left) visit(it->second.slot);
    }
  }

 private:
  std::map<uint64_t, Held> held_;  // by location
};

}  // namespace kvd
