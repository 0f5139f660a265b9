// PUT in one and in two halves, and DELETE.
#include <optional>

#include "common/base/check.h"
#include "server/store/shard.h"

namespace kvd {
namespace {

// Longer values are replaced out of place: a reader waits for the time that the copy takes.
constexpr uint64_t kOverwriteInPlaceBytesMax = 4096;

}  // namespace

WriteResult Shard::NoSpace() {
  no_space_.Add(1);
  return {.status = StoreStatus::kNoSpace};
}

WriteResult Shard::Judge(const WriteOptions& options, const Target& target) const {
  if (options.condition == WriteCondition::kNone) return {};
  if (!target.place) {
    if (options.condition == WriteCondition::kIfAbsent) return {};
    return {.status = StoreStatus::kNotFound};
  }
  const uint64_t version = items_.VersionAt(LocationOf(target.chain.SlotAt(*target.place)));
  const bool holds =
      options.condition == WriteCondition::kIfPresent ||
      (options.condition == WriteCondition::kIfVersion && options.version == version);
  if (holds) return {};
  return {.status = StoreStatus::kConditionFailed, .version = version};
}

WriteResult Shard::Put(std::string_view key, uint64_t hash, std::string_view value,
                       const WriteOptions& options) {
  if (OverdueForSplit() && !GrowthPaused()) SplitNext();
  Target target = Locate(key, hash);
  if (const WriteResult judged = Judge(options, target); judged.status != StoreStatus::kOk) {
    return judged;
  }
  return Store(target, hash,
               {.key = key, .value = value, .value_end = {}, .extras = options.extras});
}

WriteResult Shard::Store(Target& target, uint64_t hash, const ItemContent& content) {
  if (MayOverwriteInPlace(target, content.shape()) && !HasLapsed(content.extras.expiry_unix_us)) {
    return OverwriteInPlace(target, content);
  }
  return StoreElsewhere(target, hash, content);
}

WriteResult Shard::StoreElsewhere(Target& target, uint64_t hash, const ItemContent& content) {
  const uint64_t expiry_unix_us = content.extras.expiry_unix_us;
  if (HasLapsed(expiry_unix_us)) return StoreLapsed(target, expiry_unix_us);
  const ItemShape shape = content.shape();
  const std::optional<RegionOffset> at = AllocateItem(target.chain, shape.occupied_bytes());
  if (!at) return NoSpace();
  const Slot slot = PackSlot(SlotTag(hash), shape.item_bytes(), *at);
  std::optional<RegionOffset> spare;
  if (!TakeSpare(target, spare)) {
    FreeMemory(slot);
    return NoSpace();
  }
  const uint64_t version = NextVersion();
  items_.WriteNew(*at, version, content);
  Publish(target, slot, spare);
  return {.version = version, .slot = slot, .expiry_unix_us = expiry_unix_us};
}

WriteResult Shard::StoreLapsed(Target& target, uint64_t expiry_unix_us) {
  if (target.place) Erase(target.chain, *target.place, /*bring_home=*/true);
  return {.version = NextVersion(), .expiry_unix_us = expiry_unix_us};
}

bool Shard::MayOverwriteInPlace(const Target& target, const ItemShape& shape) const {
  const uint64_t occupied_bytes = shape.occupied_bytes();
  if (!target.place || occupied_bytes > kOverwriteInPlaceBytesMax) return false;
  const Slot slot = target.chain.SlotAt(*target.place);
  if (ItemBytesOf(slot) != occupied_bytes) return false;
  if (items_.FlagsAt(LocationOf(slot)) != shape.flags()) return false;
  if (!held_.empty() && held_.Contains(LocationOf(slot))) return false;
  // A small item in the heap comes home when there is room: that saves every cold GET of it a READ.
  if (occupied_bytes > local_item_bytes_max_ || LiesIn(target.chain, slot)) return true;
  return !LocalSpaceOf(target.chain).Take(occupied_bytes);
}

WriteResult Shard::OverwriteInPlace(const Target& target, const ItemContent& content) {
  const Slot slot = target.chain.SlotAt(*target.place);
  const uint64_t version = NextVersion();
  CountOut(target.chain, slot);
  items_.Overwrite(LocationOf(slot), version, content.value, content.extras);
  CountIn(target.chain, slot);
  puts_.Add(1);
  overwrites_in_place_.Add(1);
  return {.version = version, .slot = slot, .expiry_unix_us = content.extras.expiry_unix_us};
}

bool Shard::TakeSpare(const Target& target, std::optional<RegionOffset>& spare) {
  if (target.place || !target.chain.full()) return true;
  spare = heap_.Allocate(kBucketHeaderBytes);
  if (spare) overflow_headers_.Add(1);
  return spare.has_value();
}

// The new item is WRITING; then the old one DEAD, the slot switched, the new one LIVE. So at most
// one of them is LIVE at any moment, and a reader that knows only the old location is sent back to
// the index.
void Shard::Publish(Target& target, Slot slot, std::optional<RegionOffset> spare) {
  BucketChain& chain = target.chain;
  if (target.place) {
    const Slot old = chain.SlotAt(*target.place);
    items_.MarkDead(LocationOf(old));
    chain.Replace(*target.place, slot);
    items_.MarkLive(LocationOf(slot));
    CountOut(chain, old);
    FreeItem(old);
    overwrites_moved_.Add(1);
  } else {
    chain.Insert(slot, spare);
    items_.MarkLive(LocationOf(slot));
  }
  CountIn(chain, slot);
  puts_.Add(1);
}

WriteResult Shard::Delete(std::string_view key, uint64_t hash, const WriteOptions& options) {
  Target target = Locate(key, hash);
  if (!target.place) return {.status = StoreStatus::kNotFound};
  if (const WriteResult judged = Judge(options, target); judged.status != StoreStatus::kOk) {
    return judged;
  }
  Erase(target.chain, *target.place, /*bring_home=*/true);
  deletes_.Add(1);
  return {.version = NextVersion()};
}

void Shard::Erase(BucketChain& chain, SlotPlace place, bool bring_home) {
  const Slot slot = chain.SlotAt(place);
  CountOut(chain, slot);
  const bool was_local = LiesIn(chain, slot);
  items_.MarkDead(LocationOf(slot));
  if (const std::optional<RegionOffset> unlinked = chain.Remove(place)) FreeOverflow(*unlinked);
  FreeItem(slot);
  if (was_local && bring_home) BringHome(chain);
}

WriteResult Shard::Reserve(std::string_view key, uint64_t hash, uint64_t value_len,
                           Reservation& reservation, const WriteOptions& options) {
  if (options.condition != WriteCondition::kNone) {
    const WriteResult judged = Judge(options, Locate(key, hash));
    if (judged.status != StoreStatus::kOk) return judged;
  }
  const ItemShape shape{key.size(), value_len, options.extras.flags()};
  // Always in the heap: a bucket's local space is known by its slots, and a reservation has none.
  const std::optional<RegionOffset> at =
      value_len > region_.bytes() ? std::nullopt : heap_.Allocate(shape.occupied_bytes());
  if (!at) return NoSpace();
  reservation.value = items_.Prepare(*at, key, value_len, options.extras);
  reservation.key = items_.KeyAt(*at);
  reservation.value_len = value_len;
  reservation.hash = hash;
  reservation.slot = PackSlot(SlotTag(hash), shape.item_bytes(), *at);
  reservation.options = options;
  reserved_.emplace(ToBytes(*at), ItemBytesOf(reservation.slot));
  return {};
}

WriteResult Shard::Commit(const Reservation& reservation) {
  if (OverdueForSplit() && !GrowthPaused()) SplitNext();
  Target target = Locate(reservation.key, reservation.hash);
  const uint64_t expiry_unix_us = reservation.options.extras.expiry_unix_us;
  WriteResult result = Judge(reservation.options, target);
  std::optional<RegionOffset> spare;
  if (result.status == StoreStatus::kOk && HasLapsed(expiry_unix_us)) {
    result = StoreLapsed(target, expiry_unix_us);
  } else if (result.status == StoreStatus::kOk && !TakeSpare(target, spare)) {
    result = NoSpace();
  } else if (result.status == StoreStatus::kOk) {
    KVD_CHECK(reserved_.erase(ToBytes(LocationOf(reservation.slot))) == 1);
    const uint64_t version = NextVersion();
    items_.Seal(LocationOf(reservation.slot), version);
    Publish(target, reservation.slot, spare);
    return {.version = version, .slot = reservation.slot, .expiry_unix_us = expiry_unix_us};
  }
  Abort(reservation);
  return result;
}

void Shard::Abort(const Reservation& reservation) {
  KVD_CHECK(reserved_.erase(ToBytes(LocationOf(reservation.slot))) == 1);
  FreeMemory(reservation.slot);
}

}  // namespace kvd
