// PUT in one and in two halves, and DELETE.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "server/store/shard.h"

namespace kvd {
namespace {

// Longer values are replaced out of place: a reader waits for the time that the copy takes.
constexpr uint64_t kOverwriteInPlaceBytesMax = 4096;

}  // namespace

StoreResult Shard::NoSpace() {
  no_space_.Add(1);
  return {.status = StoreStatus::kNoSpace};
}

StoreResult Shard::Judge(const StoreOptions& options, const Target& target) const {
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

// Flattened: the calls of the usual way, an overwrite in place, would cost a fifth of it.
[[gnu::flatten]] StoreResult Shard::Put(std::string_view key, uint64_t hash, std::string_view value,
                                        const StoreOptions& options) {
  if (OverdueForSplit() && !GrowthPaused()) SplitNext();
  Target target = Locate(key, hash);
  if (options.condition != WriteCondition::kNone) [[unlikely]] {
    if (const StoreResult judged = Judge(options, target); judged.status != StoreStatus::kOk) {
      return judged;
    }
  }
  return Store(target, hash,
               {.key = key, .value = value, .value_end = {}, .extras = options.extras});
}

StoreResult Shard::Store(Target& target, uint64_t hash, const ItemContent& content) {
  ReserveExpiry(content.extras.expiry_unix_us);
  if (MayOverwriteInPlace(target, content.shape()) && !HasLapsed(content.extras.expiry_unix_us)) {
    return OverwriteInPlace(target, content);
  }
  return StoreElsewhere(target, hash, content);
}

StoreResult Shard::StoreElsewhere(Target& target, uint64_t hash, const ItemContent& content) {
  const uint64_t expiry_unix_us = content.extras.expiry_unix_us;
  if (HasLapsed(expiry_unix_us)) return StoreLapsed(target, expiry_unix_us);
  ReserveExpiry(expiry_unix_us);
  const ItemShape shape = content.shape();
  const uint64_t rearranged_before = rearranged_;
  pinned_ = target.place ? target.chain.SlotAt(*target.place) : kEmptySlot;
  std::optional<RegionOffset> spare;
  if (!TakeSpare(target, spare)) return NoSpace();
  std::optional<RegionOffset> at;
  if (rearranged_ == rearranged_before) at = AllocateItem(target.chain, shape.occupied_bytes());
  if (!at) [[unlikely]]
    return StoreMakingRoom(target, hash, content, spare);
  return StoreAt(target, hash, content, *at, spare);
}

StoreResult Shard::StoreAt(Target& target, uint64_t hash, const ItemContent& content,
                           RegionOffset at, std::optional<RegionOffset> spare) {
  const Slot slot = PackSlot(SlotTag(hash), content.shape().item_bytes(), at);
  const uint64_t version = NextVersion();
  items_.WriteNew(at, version, content);
  Publish(target, slot, spare);
  return {.version = version, .slot = slot, .expiry_unix_us = content.extras.expiry_unix_us};
}

StoreResult Shard::StoreMakingRoom(Target& target, uint64_t hash, ItemContent content,
                                   std::optional<RegionOffset> spare) {
  // What is written may be taken from the item that is there. Where that lies in a bucket, a merge
  // may move it, and the memory that it leaves may become that of the new one.
  std::string copies[2];
  if (pinned_ != kEmptySlot && !heap_.Contains(LocationOf(pinned_))) {
    const auto* const item = reinterpret_cast<const char*>(region_.At(LocationOf(pinned_)));
    for (auto [view, copy] :
         {std::pair{&content.value, &copies[0]}, std::pair{&content.value_end, &copies[1]}}) {
      if (view->data() < item || view->data() >= item + ItemBytesOf(pinned_)) continue;
      *copy = *view;
      *view = *copy;
    }
  }
  // A small one borrows before the index shrinks for its sake: that would make the next ones
  // borrow.
  const uint64_t occupied_bytes = content.shape().occupied_bytes();
  std::optional<RegionOffset> at = AllocateItem(ChainOf(hash), occupied_bytes);
  if (!at) at = Borrow(occupied_bytes, {.header_of = {}, .hash = hash}, std::nullopt);
  if (!at) {
    // What merges may have to move from where it is lent, but not while it belongs to no chain.
    // LocateAgain takes another.
    if (spare && guests_.Contains(*spare)) {
      FreeOverflow(*spare);
      spare.reset();
    }
    at = AllocateInNeed(hash, occupied_bytes);
  }
  if (!at) {
    if (spare) FreeOverflow(*spare);
    return NoSpace();
  }
  if (!LocateAgain(target, content.key, hash, spare)) {
    FreeMemory(PackSlot(SlotTag(hash), content.shape().item_bytes(), *at));
    return NoSpace();
  }
  return StoreAt(target, hash, content, *at, spare);
}

StoreResult Shard::StoreLapsed(Target& target, uint64_t expiry_unix_us) {
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

StoreResult Shard::OverwriteInPlace(const Target& target, const ItemContent& content) {
  const Slot slot = target.chain.SlotAt(*target.place);
  const uint64_t version = NextVersion();
  // Of what CountOut and CountIn count, nothing else changes: size, place and kinds of extras stay.
  const uint64_t old_bytes = items_.ShapeOf(slot).value_len;
  user_bytes_.Add(content.value.size());
  user_bytes_.Subtract(std::min(user_bytes_.get(), old_bytes));
  items_.Overwrite(LocationOf(slot), version, content.value, content.extras);
  if (content.extras.expiry_unix_us != 0) NoteExpiry(target.chain, content.extras.expiry_unix_us);
  Use(target.chain, slot);
  puts_.Add(1);
  overwrites_in_place_.Add(1);
  return {.version = version, .slot = slot, .expiry_unix_us = content.extras.expiry_unix_us};
}

bool Shard::TakeSpare(Target& target, std::optional<RegionOffset>& spare) {
  if (target.place || !target.chain.full()) return true;
  spare = heap_.Allocate(kBucketHeaderBytes);
  if (!spare && evicts_) {
    if (const std::optional<SlotPlace> local = OldestLocal(target.chain)) {
      Evict(target.chain, *local);
      return true;
    }
  }
  if (!spare) spare = BorrowHeader(target.chain);
  if (!spare) spare = AllocateInNeed(std::nullopt, kBucketHeaderBytes);
  if (spare) overflow_headers_.Add(1);
  return spare.has_value();
}

// The item that is replaced was pinned, so it is there still, though perhaps in another bucket. A
// chain may have room now that had none, or have lost the header in which it had some.
bool Shard::LocateAgain(Target& target, std::string_view key, uint64_t hash,
                        std::optional<RegionOffset>& spare) {
  target.chain = ChainOf(hash);
  target.place = FindPlace(target.chain, key, hash);
  const bool needs_spare = !target.place && target.chain.full();
  if (needs_spare == spare.has_value()) return true;
  if (spare) {
    FreeOverflow(*spare);
    spare.reset();
    return true;
  }
  spare = heap_.Allocate(kBucketHeaderBytes);
  if (!spare) spare = BorrowHeader(target.chain);
  if (spare) {
    overflow_headers_.Add(1);
    return true;
  }
  if (!evicts_) return false;
  const std::optional<SlotPlace> local = OldestLocal(target.chain);
  if (local) Evict(target.chain, *local);
  return local.has_value();
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
  Use(chain, slot);
  puts_.Add(1);
}

StoreResult Shard::Delete(std::string_view key, uint64_t hash, const StoreOptions& options) {
  Target target = Locate(key, hash);
  if (!target.place) return {.status = StoreStatus::kNotFound};
  if (const StoreResult judged = Judge(options, target); judged.status != StoreStatus::kOk) {
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
  if (evicts_ && place.header == chain.place()) {
    // If there is a chain, one of its items has come here.
    const uint32_t bucket = ToNumber(chain.bucket());
    stamps_.Set(bucket, place.index, stamps_.Get(bucket, AccessStamps::kChainCell));
  }
  FreeItem(slot);
  if (was_local) NoteLender(chain.bucket());
  if (was_local && bring_home) BringHome(chain);
}

// Always in the heap: a bucket's local space is known by its slots, and a reservation has none. The
// old value stays until the new one has arrived, and a write that asks for it finds it then. Only
// where nothing else makes room for one that does not, the old value may go before.
std::optional<RegionOffset> Shard::RoomBeside(const Target& target, uint64_t bytes,
                                              const StoreOptions& options) {
  pinned_ = target.place ? target.chain.SlotAt(*target.place) : kEmptySlot;
  std::optional<RegionOffset> at = AllocateMakingRoom(std::nullopt, bytes);
  const bool needs_old = options.condition != WriteCondition::kNone || options.joins;
  if (!at && pinned_ != kEmptySlot && !needs_old) {
    pinned_ = kEmptySlot;
    at = AllocateMakingRoom(std::nullopt, bytes);
  }
  pinned_ = kEmptySlot;
  return at;
}

StoreResult Shard::Reserve(std::string_view key, uint64_t hash, uint64_t value_len,
                           Reservation& reservation, const StoreOptions& options) {
  const Target target = Locate(key, hash);
  if (const StoreResult judged = Judge(options, target); judged.status != StoreStatus::kOk)
    return judged;
  ReserveExpiry(options.extras.expiry_unix_us);
  const ItemShape shape{key.size(), value_len, options.extras.flags()};
  const std::optional<RegionOffset> at = value_len > region_.bytes()
                                             ? std::nullopt
                                             : RoomBeside(target, shape.occupied_bytes(), options);
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

StoreResult Shard::Commit(const Reservation& reservation) {
  if (OverdueForSplit() && !GrowthPaused()) SplitNext();
  Target target = Locate(reservation.key, reservation.hash);
  const uint64_t expiry_unix_us = reservation.options.extras.expiry_unix_us;
  if (const StoreResult judged = Judge(reservation.options, target);
      judged.status != StoreStatus::kOk) {
    Abort(reservation);
    return judged;
  }
  if (HasLapsed(expiry_unix_us)) {
    Abort(reservation);
    return StoreLapsed(target, expiry_unix_us);
  }
  const uint64_t rearranged_before = rearranged_;
  pinned_ = target.place ? target.chain.SlotAt(*target.place) : kEmptySlot;
  std::optional<RegionOffset> spare;
  if (!TakeSpare(target, spare) ||
      (rearranged_ != rearranged_before &&
       !LocateAgain(target, reservation.key, reservation.hash, spare))) {
    Abort(reservation);
    return NoSpace();
  }
  KVD_CHECK(reserved_.erase(ToBytes(LocationOf(reservation.slot))) == 1);
  const uint64_t version = NextVersion();
  items_.Seal(LocationOf(reservation.slot), version);
  Publish(target, reservation.slot, spare);
  return {.version = version, .slot = reservation.slot, .expiry_unix_us = expiry_unix_us};
}

void Shard::Abort(const Reservation& reservation) {
  KVD_CHECK(reserved_.erase(ToBytes(LocationOf(reservation.slot))) == 1);
  FreeMemory(reservation.slot);
}

}  // namespace kvd
