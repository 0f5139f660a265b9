#include "server/store/shard.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace kvd {
namespace {

// Longer values are replaced out of place: a reader waits for the time that the copy takes.
constexpr uint64_t kOverwriteInPlaceBytesMax = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<Shard>> Shard::Create(Region& region, uint32_t shard,
                                                     const Clock& clock) {
  KVD_CHECK(shard < region.geometry().shard_count);
  std::unique_ptr<Shard> made(new Shard(region, shard, clock));
  if (!made->MakeFirstBuckets()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("shard ", shard, ": the region of ", region.bytes(),
                     " bytes has no free segment for its first buckets"));
  }
  return made;
}

Shard::Shard(Region& region, uint32_t shard, const Clock& clock)
    : region_(region),
      shard_(shard),
      clock_(clock),
      local_bytes_(region.geometry().bucket_bytes - kBucketHeaderBytes),
      local_item_bytes_max_(LocalItemBytesMax(region.geometry().bucket_bytes)),
      items_(region),
      table_(region, shard),
      heap_(region.pages(), region.bytes()) {
  RefreshClock();
}

Shard::~Shard() = default;

// As many as one segment has: the memory is taken anyway.
bool Shard::MakeFirstBuckets() {
  if (!table_.PlaceNext()) return false;
  const uint32_t count = region_.geometry().buckets_per_segment();
  const uint32_t depth = static_cast<uint32_t>(std::bit_width(count - 1));
  for (uint32_t bucket = 0; bucket < count; ++bucket)
    ChainAt(BucketIndex{bucket}).Rewrite(depth, {}, {});
  table_.PublishCount(count);
  return true;
}

void Shard::RefreshClock() {
  const int64_t now_us = std::max<int64_t>(clock_.NowUnixUs(), 0);
  clock_version_ = std::min(static_cast<uint64_t>(now_us) << 10, kVersionMax >> 1);
}

// A hybrid clock: the time, unless that would not grow (Kulkarni et al., "Logical Physical Clocks",
// 2014).
uint64_t Shard::NextVersion() {
  last_version_ = std::max(last_version_ + 1, clock_version_);
  return last_version_;
}

void Shard::Prefetch(uint64_t hash) const {
  const std::byte* header = region_.At(table_.PlaceOf(table_.BucketOfHash(hash)));
  __builtin_prefetch(header);
  __builtin_prefetch(header + kCacheLineBytes);
}

std::optional<SlotPlace> Shard::FindPlace(const BucketChain& chain, std::string_view key,
                                          uint64_t hash) const {
  std::optional<SlotPlace> found;
  chain.AnyWithTag(SlotTag(hash), [&](SlotPlace place, Slot slot) {
    if (items_.KeyAt(LocationOf(slot)) != key) return false;
    found = place;
    return true;
  });
  return found;
}

bool Shard::Find(std::string_view key, uint64_t hash, ItemView& item, Slot& slot) const {
  const BucketChain chain = ChainOf(hash);
  const std::optional<SlotPlace> place = FindPlace(chain, key, hash);
  if (!place) return false;
  slot = chain.SlotAt(*place);
  item = items_.Read(LocationOf(slot));
  return true;
}

LocalSpace Shard::LocalSpaceOf(const BucketChain& chain) const {
  const uint32_t bucket_bytes = region_.geometry().bucket_bytes;
  LocalSpace space(chain.place(), bucket_bytes);
  chain.AnyOf([&](SlotPlace, Slot slot) {
    if (space.Contains(LocationOf(slot))) space.MarkUsed(LocationOf(slot), ItemBytesOf(slot));
    return false;
  });
  if (!held_.empty()) {
    held_.ForEachLeft(chain.place(), chain.place() + bucket_bytes,
                      [&](Slot slot) { space.MarkUsed(LocationOf(slot), ItemBytesOf(slot)); });
  }
  return space;
}

bool Shard::LiesIn(const BucketChain& chain, Slot slot) const {
  return ToBytes(LocationOf(slot)) - ToBytes(chain.place()) < region_.geometry().bucket_bytes;
}

std::optional<RegionOffset> Shard::AllocateItem(const BucketChain& chain, uint64_t occupied_bytes) {
  if (occupied_bytes <= local_item_bytes_max_) {
    LocalSpace space = LocalSpaceOf(chain);
    if (const std::optional<RegionOffset> at = space.Take(occupied_bytes)) return at;
  }
  return heap_.Allocate(occupied_bytes);
}

void Shard::FreeItem(Slot slot) {
  if (!held_.empty() && held_.Leave(slot)) return;
  FreeMemory(slot);
}

// Local space needs no freeing: it is free when no slot names it.
void Shard::FreeMemory(Slot slot) {
  if (heap_.Contains(LocationOf(slot))) heap_.Free(LocationOf(slot), ItemBytesOf(slot));
}

void Shard::CountIn(const BucketChain& chain, Slot slot) {
  const ItemShape shape = items_.ShapeAt(LocationOf(slot));
  item_count_.Add(1);
  user_bytes_.Add(shape.key_len + shape.value_len);
  if (LiesIn(chain, slot)) local_items_.Add(1);
  if (ItemBytesOf(slot) <= local_item_bytes_max_) wanted_local_bytes_.Add(ItemBytesOf(slot));
}

void Shard::CountOut(const BucketChain& chain, Slot slot) {
  const ItemShape shape = items_.ShapeAt(LocationOf(slot));
  item_count_.Subtract(1);
  user_bytes_.Subtract(shape.key_len + shape.value_len);
  if (LiesIn(chain, slot)) local_items_.Subtract(1);
  if (ItemBytesOf(slot) <= local_item_bytes_max_) wanted_local_bytes_.Subtract(ItemBytesOf(slot));
}

WriteResult Shard::NoSpace() {
  no_space_.Add(1);
  return {.status = StoreStatus::kNoSpace};
}

WriteResult Shard::Put(std::string_view key, uint64_t hash, std::string_view value) {
  if (OverdueForSplit() && !GrowthPaused()) SplitNext();
  Target target{.chain = ChainOf(hash), .place = {}};
  target.place = FindPlace(target.chain, key, hash);
  const ItemShape shape{key.size(), value.size()};
  if (MayOverwriteInPlace(target, shape.occupied_bytes())) return OverwriteInPlace(target, value);

  const std::optional<RegionOffset> at = AllocateItem(target.chain, shape.occupied_bytes());
  if (!at) return NoSpace();
  const Slot slot = PackSlot(SlotTag(hash), shape.item_bytes(), *at);
  std::optional<RegionOffset> spare;
  if (!TakeSpare(target, spare)) {
    FreeMemory(slot);
    return NoSpace();
  }
  const uint64_t version = NextVersion();
  items_.WriteNew(*at, version, key, value);
  Publish(target, slot, spare);
  return {.version = version, .slot = slot};
}

bool Shard::MayOverwriteInPlace(const Target& target, uint64_t occupied_bytes) const {
  if (!target.place || occupied_bytes > kOverwriteInPlaceBytesMax) return false;
  const Slot slot = target.chain.SlotAt(*target.place);
  if (ItemBytesOf(slot) != occupied_bytes) return false;
  if (!held_.empty() && held_.Contains(LocationOf(slot))) return false;
  // A small item in the heap comes home when there is room: that saves every cold GET of it a READ.
  if (occupied_bytes > local_item_bytes_max_ || LiesIn(target.chain, slot)) return true;
  return !LocalSpaceOf(target.chain).Take(occupied_bytes);
}

WriteResult Shard::OverwriteInPlace(const Target& target, std::string_view value) {
  const Slot slot = target.chain.SlotAt(*target.place);
  const uint64_t version = NextVersion();
  CountOut(target.chain, slot);
  items_.Overwrite(LocationOf(slot), version, value);
  CountIn(target.chain, slot);
  puts_.Add(1);
  overwrites_in_place_.Add(1);
  return {.version = version, .slot = slot};
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

WriteResult Shard::Delete(std::string_view key, uint64_t hash) {
  BucketChain chain = ChainOf(hash);
  const std::optional<SlotPlace> place = FindPlace(chain, key, hash);
  if (!place) return {.status = StoreStatus::kNotFound};
  const Slot slot = chain.SlotAt(*place);
  CountOut(chain, slot);
  const bool was_local = LiesIn(chain, slot);
  items_.MarkDead(LocationOf(slot));
  if (const std::optional<RegionOffset> unlinked = chain.Remove(*place)) FreeOverflow(*unlinked);
  FreeItem(slot);
  deletes_.Add(1);
  if (was_local) BringHome(chain);
  return {.version = NextVersion()};
}

StoreStatus Shard::Reserve(std::string_view key, uint64_t hash, uint64_t value_len,
                           Reservation& reservation) {
  const ItemShape shape{key.size(), value_len};
  // Always in the heap: a bucket's local space is known by its slots, and a reservation has none.
  const std::optional<RegionOffset> at =
      value_len > region_.bytes() ? std::nullopt : heap_.Allocate(shape.occupied_bytes());
  if (!at) return NoSpace().status;
  reservation.value = items_.Prepare(*at, key, value_len);
  reservation.key = items_.KeyAt(*at);
  reservation.value_len = value_len;
  reservation.hash = hash;
  reservation.slot = PackSlot(SlotTag(hash), shape.item_bytes(), *at);
  reserved_.emplace(ToBytes(*at), ItemBytesOf(reservation.slot));
  return StoreStatus::kOk;
}

WriteResult Shard::Commit(const Reservation& reservation) {
  if (OverdueForSplit() && !GrowthPaused()) SplitNext();
  KVD_CHECK(reserved_.erase(ToBytes(LocationOf(reservation.slot))) == 1);
  Target target{.chain = ChainOf(reservation.hash), .place = {}};
  target.place = FindPlace(target.chain, reservation.key, reservation.hash);
  std::optional<RegionOffset> spare;
  if (!TakeSpare(target, spare)) {
    FreeMemory(reservation.slot);
    return NoSpace();
  }
  const uint64_t version = NextVersion();
  items_.Seal(LocationOf(reservation.slot), version);
  Publish(target, reservation.slot, spare);
  return {.version = version, .slot = reservation.slot};
}

void Shard::Abort(const Reservation& reservation) {
  KVD_CHECK(reserved_.erase(ToBytes(LocationOf(reservation.slot))) == 1);
  FreeMemory(reservation.slot);
}

void Shard::Hold(Slot slot) { held_.Hold(slot); }

void Shard::Release(Slot slot) {
  if (const std::optional<Slot> free = held_.Release(slot)) FreeMemory(*free);
}

ShardStats Shard::stats() const {
  return {.items = item_count_.get(),
          .user_bytes = user_bytes_.get(),
          .local_items = local_items_.get(),
          .buckets = table_.count(),
          .overflow_headers = overflow_headers_.get(),
          .index_bytes = table_.index_bytes(),
          .heap_bytes = heap_.held_bytes(),
          .heap_used_bytes = heap_.used_bytes(),
          .puts = puts_.get(),
          .deletes = deletes_.get(),
          .overwrites_in_place = overwrites_in_place_.get(),
          .overwrites_moved = overwrites_moved_.get(),
          .splits = splits_.get(),
          .no_space = no_space_.get()};
}

}  // namespace kvd
