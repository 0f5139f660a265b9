#include "server/store/shard.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace kvd {
absl::StatusOr<std::unique_ptr<Shard>> Shard::Create(Region& region, uint32_t shard,
                                                     const Clock& clock,
                                                     const ShardOptions& options) {
  KVD_CHECK(shard < region.geometry().shard_count);
  std::unique_ptr<Shard> made(new Shard(region, shard, clock, options));
  if (!made->MakeFirstBuckets()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("shard ", shard, ": the region of ", region.bytes(),
                     " bytes has no free segment for its first buckets"));
  }
  return made;
}

Shard::Shard(Region& region, uint32_t shard, const Clock& clock, const ShardOptions& options)
    : region_(region),
      shard_(shard),
      clock_(clock),
      evicts_(options.evict),
      local_bytes_(region.geometry().bucket_bytes - kBucketHeaderBytes),
      local_item_bytes_max_(LocalItemBytesMax(region.geometry().bucket_bytes)),
      items_(region),
      table_(region, shard),
      heap_(region.pages(), region.bytes(), shard),
      random_(region.geometry().incarnation + shard) {
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
  if (!evicts_) return true;
  stamps_.Reserve(count);
  // It can make room for itself there. In holes of others' zones it would be in their way.
  heap_.KeepToZone(true);
  table_.KeepToZone(true);
  return true;
}

void Shard::RefreshClock() {
  const int64_t now_us = std::max<int64_t>(clock_.NowUnixUs(), 0);
  now_unix_us_ = static_cast<uint64_t>(now_us);
  clock_version_ = std::min(now_unix_us_ << 10, kVersionMax >> 1);
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
    const std::string_view held = items_.KeyOf(slot);
    if (held.size() != key.size() || !internal::SameBytes(held.data(), key.data(), key.size())) {
      return false;
    }
    found = place;
    return true;
  });
  return found;
}

[[gnu::flatten]] Shard::Target Shard::Locate(std::string_view key, uint64_t hash) {
  Target target{.chain = ChainOf(hash), .place = {}};
  target.place = FindPlace(target.chain, key, hash);
  if (target.place && ItemHasLapsed(target.chain.SlotAt(*target.place))) [[unlikely]] {
    EraseLapsed(target.chain, *target.place, /*bring_home=*/true);
    target.place.reset();
  }
  return target;
}

bool Shard::MayBuildOn(Slot slot) {
  if (items_.IsWhole(LocationOf(slot), ItemBytesOf(slot))) [[likely]]
    return true;
  damaged_items_met_.Add(1);
  return false;
}

// Readers come here with what did not verify, so nothing is returned that does not. Where the key
// is not found, its item may be one whose key has changed.
StoreStatus Shard::Find(std::string_view key, uint64_t hash, ItemView& item, Slot& slot) {
  const Target target = Locate(key, hash);
  if (!target.place) {
    const bool damaged = target.chain.AnyWithTag(
        SlotTag(hash), [&](SlotPlace, Slot other) { return !MayBuildOn(other); });
    return damaged ? StoreStatus::kDamaged : StoreStatus::kNotFound;
  }
  slot = target.chain.SlotAt(*target.place);
  if (!MayBuildOn(slot)) return StoreStatus::kDamaged;
  item = items_.Read(LocationOf(slot));
  Use(target.chain, slot);
  return StoreStatus::kOk;
}

bool Shard::Peek(std::string_view key, uint64_t hash) const {
  const BucketChain chain = ChainOf(hash);
  const std::optional<SlotPlace> place = FindPlace(chain, key, hash);
  return place && !ItemHasLapsed(chain.SlotAt(*place));
}

[[gnu::flatten]] LocalSpace Shard::LocalSpaceOf(const BucketChain& chain) const {
  const uint32_t bucket_bytes = region_.geometry().bucket_bytes;
  LocalSpace space(chain.place(), bucket_bytes);
  chain.AnyOf([&](SlotPlace, Slot slot) {
    if (space.Contains(LocationOf(slot))) space.MarkUsed(LocationOf(slot), ItemBytesOf(slot));
    return false;
  });
  if (!guests_.empty()) [[unlikely]] {
    guests_.ForEachIn(chain.place(), chain.place() + bucket_bytes,
                      [&](const Guests::Guest& guest) { space.MarkUsed(guest.at, guest.bytes); });
  }
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
    if (!guests_.empty()) [[unlikely]] {
      if (const std::optional<RegionOffset> at = Reclaim(chain, occupied_bytes)) return at;
    }
  }
  return heap_.Allocate(occupied_bytes);
}

void Shard::FreeItem(Slot slot) {
  if (!held_.empty() && held_.Leave(slot)) {
    EndLoan(LocationOf(slot));  // from now on it is known as what is held
    return;
  }
  FreeMemory(slot);
}

// Local space needs no freeing: it is free when neither a slot nor a guest names it.
void Shard::FreeMemory(Slot slot) {
  if (EndLoan(LocationOf(slot))) return;
  if (heap_.Contains(LocationOf(slot))) heap_.Free(LocationOf(slot), ItemBytesOf(slot));
}

void Shard::CountIn(const BucketChain& chain, Slot slot) {
  may_have_work_ = true;
  const ItemShape shape = items_.ShapeOf(slot);
  item_count_.Add(1);
  user_bytes_.Add(shape.key_len + shape.value_len);
  if (LiesIn(chain, slot)) local_items_.Add(1);
  if ((shape.extras & kItemHasExpiry) != 0) {
    expiring_items_.Add(1);
    NoteExpiry(chain, items_.ExtrasOf(slot).expiry_unix_us);
  }
  if (ItemBytesOf(slot) <= local_item_bytes_max_) wanted_local_bytes_.Add(ItemBytesOf(slot));
}

void Shard::CountOut(const BucketChain& chain, Slot slot) {
  may_have_work_ = true;
  const ItemShape shape = items_.ShapeOf(slot);
  item_count_.Subtract(1);
  user_bytes_.Subtract(std::min(user_bytes_.get(), shape.key_len + shape.value_len));
  if (LiesIn(chain, slot)) local_items_.Subtract(1);
  if ((shape.extras & kItemHasExpiry) != 0 && expiring_items_.get() != 0) {
    expiring_items_.Subtract(1);
  }
  if (ItemBytesOf(slot) <= local_item_bytes_max_) wanted_local_bytes_.Subtract(ItemBytesOf(slot));
}

void Shard::Hold(Slot slot) { held_.Hold(slot); }

void Shard::Release(Slot slot) {
  may_have_work_ = true;
  if (const std::optional<Slot> free = held_.Release(slot)) FreeMemory(*free);
}

ShardStats Shard::stats() const {
  ShardStats stats = {.items = item_count_.get(),
                      .user_bytes = user_bytes_.get(),
                      .local_items = local_items_.get(),
                      .expiring_items = expiring_items_.get(),
                      .buckets = table_.count(),
                      .overflow_headers = overflow_headers_.get(),
                      .borrowed_places = borrowed_places_.get(),
                      .index_bytes = table_.index_bytes(),
                      .heap_bytes = heap_.held_bytes(),
                      .heap_used_bytes = heap_.used_bytes(),
                      .puts = puts_.get(),
                      .deletes = deletes_.get(),
                      .overwrites_in_place = overwrites_in_place_.get(),
                      .overwrites_moved = overwrites_moved_.get(),
                      .splits = splits_.get(),
                      .merges = merges_.get(),
                      .no_space = no_space_.get(),
                      .damaged_items_met = damaged_items_met_.get(),
                      .index_bytes_given_back = index_bytes_given_back_.get(),
                      .expired_items = expired_items_.get(),
                      .expired_bytes = expired_bytes_.get(),
                      .evicted_items = evicted_items_.get(),
                      .evicted_bytes = evicted_bytes_.get(),
                      .items_looked_at = items_looked_at_.get(),
                      .segments_moved = segments_moved_.get()};
  for (uint32_t group = 0; group < kSizeGroupCount; ++group) {
    stats.heap_held_of[group] = heap_.held_bytes_of(group);
    stats.heap_used_of[group] = heap_.used_bytes_of(group);
  }
  return stats;
}

}  // namespace kvd
