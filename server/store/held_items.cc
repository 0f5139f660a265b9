#include "server/store/held_items.h"

namespace kvd {

void HeldItems::Hold(Slot slot) {
  Held& held = held_[ToBytes(LocationOf(slot))];
  held.slot = slot;
  ++held.holders;
}

std::optional<Slot> HeldItems::Release(Slot slot) {
  const auto found = held_.find(ToBytes(LocationOf(slot)));
  if (found == held_.end() || --found->second.holders != 0) return std::nullopt;
  const Held held = found->second;
  held_.erase(found);
  if (!held.left) return std::nullopt;
  return held.slot;
}

bool HeldItems::Leave(Slot slot) {
  const auto found = held_.find(ToBytes(LocationOf(slot)));
  if (found == held_.end()) return false;
  found->second.left = true;
  return true;
}

}  // namespace kvd
