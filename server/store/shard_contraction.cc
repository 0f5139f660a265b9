// The index shrinks: the last bucket is merged into the one that it was split off, the inverse of
// SplitNext, and a segment that holds no bucket any more goes back to the page allocator.
//
// Three things ask for it. Work(), when the load has become low: memory that many small items had
// is the heap's again. A write that finds no memory, as far as the load allows. And eviction, when
// what the buckets hold is older than what the heap holds (shard_evict.cc): then items go that find
// no place in the merged bucket.
#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "server/store/shard.h"

namespace kvd {
namespace {

// Work() merges below this part of the load at which the table grows. Far enough below 100 that a
// table does not go to and fro: what a merge has brought to 40 % has to grow by a half before the
// next split.
constexpr uint64_t kSparsePercent = 40;
// And a write that finds no memory, below this.
constexpr uint64_t kSparseInNeedPercent = 90;

constexpr uint32_t kMergesPerStep = 4;

// After a merge found no memory, this many steps of work and failed allocations pass before the
// next attempt.
constexpr uint32_t kPauseAfterNoRoom = 64;

}  // namespace

// What a merge does with the slots of both buckets.
struct Shard::Merge {
  std::vector<Slot> slots;  // of both, as they will be in the parent
  std::vector<AccessStamps::Stamp> stamps;
  std::vector<Slot> left;    // the child's copies of its local items
  std::vector<Slot> copied;  // and the parent's, or the heap's
  std::vector<RegionOffset> overflow;
};

bool Shard::MayMerge(uint64_t percent) const {
  const uint32_t count = table_.count();
  return count > region_.geometry().buckets_per_segment() && !LoadIsAbove(percent, count - 1);
}

bool Shard::IsSparse() const { return MayMerge(kSparsePercent); }

bool Shard::ContractStep() {
  if (contraction_pause_ != 0) {
    --contraction_pause_;
    return false;
  }
  for (uint32_t i = 0; i < kMergesPerStep && MayMerge(kSparsePercent); ++i) {
    if (MergeLast(/*squeeze=*/false)) continue;
    contraction_pause_ = kPauseAfterNoRoom;
    return false;
  }
  return MayMerge(kSparsePercent);
}

bool Shard::PlanMerge(const BucketChain& parent, const BucketChain& child, bool squeeze,
                      Merge& merge) {
  LocalSpace space = LocalSpaceOf(parent);
  const auto add = [&](const BucketChain& chain, SlotPlace place, Slot slot) {
    merge.slots.push_back(slot);
    if (!evicts_) return;
    merge.stamps.push_back(stamps_.Get(ToNumber(chain.bucket()), CellOf(chain, place)));
  };
  parent.AnyOf([&](SlotPlace place, Slot slot) {
    add(parent, place, slot);
    return false;
  });
  const bool lacks_memory = child.AnyOf([&](SlotPlace place, Slot slot) {
    if (!LiesIn(child, slot)) {
      add(child, place, slot);
      return false;
    }
    std::optional<RegionOffset> to = space.Take(ItemBytesOf(slot));
    if (!to && !squeeze) to = heap_.Allocate(ItemBytesOf(slot));
    if (!to) return true;
    merge.left.push_back(slot);
    merge.copied.push_back(PackSlot(TagOf(slot), ItemBytesOf(slot), *to));
    add(child, place, merge.copied.back());
    return false;
  });
  if (!lacks_memory &&
      TakeOverflow(BucketChain::OverflowNeeded(merge.slots.size()), merge.overflow)) {
    return true;
  }
  for (const Slot copy : merge.copied) FreeMemory(copy);
  for (const RegionOffset header : merge.overflow) FreeOverflow(header);
  return false;
}

bool Shard::MergeLast(bool squeeze) {
  const uint32_t last = table_.count() - 1;
  BucketChain parent = ChainAt(BucketIndex{last - std::bit_floor(last)});
  BucketChain child = ChainAt(BucketIndex{last});
  Merge merge;
  if (!guests_.empty() && !SendGuestsAway(child)) return false;
  if (!PlanMerge(parent, child, squeeze, merge)) return false;
  ApplyMerge(parent, child, merge);
  GiveBackSegments();
  return true;
}

// The order in which readers see it, so that none misses a key that is there: (1) the copies are
// complete, but WRITING; (2) the child's own are DEAD: whoever comes to them looks again; (3) the
// parent's header has all slots, and says by its depth that the child's keys are in it; (4) the
// copies are LIVE; (5) the count leads new readers to the parent; (6) the child's header, which has
// been as right as the parent's from (3) on, is empty and says by its depth that it is merged. From
// then on nobody concludes anything from it, nor from what is left of it when the segment has gone.
//
// The other way round, with the child emptied first, readers would go to and fro between the two
// for the time in between. And the count before (6): who is sent back by the child and then reads
// the count is not led there again.
void Shard::ApplyMerge(BucketChain& parent, BucketChain& child, Merge& merge) {
  std::vector<RegionOffset> old_overflow;
  const auto remember = [&](RegionOffset header) { old_overflow.push_back(header); };
  parent.ForEachOverflow(remember);
  child.ForEachOverflow(remember);
  const uint32_t depth = MergedDepth(child.bucket());

  for (size_t i = 0; i < merge.left.size(); ++i) {
    items_.CopyNew(LocationOf(merge.copied[i]), LocationOf(merge.left[i]),
                   ItemBytesOf(merge.left[i]));
  }
  for (const Slot slot : merge.left) items_.MarkDead(LocationOf(slot));
  parent.Rewrite(depth, merge.slots, merge.overflow);
  for (const Slot slot : merge.copied) items_.MarkLive(LocationOf(slot));
  table_.PublishCount(ToNumber(child.bucket()));
  child.Rewrite(depth, {}, {});

  if (evicts_) SetStamps(parent, merge.stamps);
  if (!expiry_.empty()) {
    expiry_.Share(ToNumber(parent.bucket()), ToNumber(child.bucket()));
    expiry_.Forget(ToNumber(child.bucket()));
  }
  for (size_t i = 0; i < merge.left.size(); ++i) {
    if (!LiesIn(parent, merge.copied[i])) local_items_.Subtract(1);
    if (pinned_ == merge.left[i]) pinned_ = merge.copied[i];
    FreeItem(merge.left[i]);
  }
  if (!guests_.empty()) {
    for (const Slot slot : merge.slots) {
      // One of the child's items was the parent's guest, and has come home by that.
      if (LiesIn(parent, slot) && EndLoan(LocationOf(slot))) local_items_.Add(1);
    }
  }
  for (const RegionOffset header : old_overflow) FreeOverflow(header);
  ++rearranged_;
  merges_.Add(1);
}

// Not while an item is held there that left the index when its bucket was merged: its bytes are
// somebody's still.
bool Shard::GiveBackSegments() {
  bool any = false;
  for (;;) {
    const std::optional<RegionOffset> segment = table_.EmptySegment();
    if (!segment || (!held_.empty() && held_.AnyIn(*segment, *segment + kSegmentBytes))) break;
    table_.GiveBackEmptySegment();
    index_bytes_given_back_.Add(kSegmentBytes);
    any = true;
  }
  return any;
}

bool Shard::ContractInNeed() {
  if (!MayMerge(kSparseInNeedPercent)) return GiveBackSegments();
  if (contraction_pause_ != 0) {
    --contraction_pause_;
    return GiveBackSegments();
  }
  const uint64_t before = table_.index_bytes();
  while (MayMerge(kSparseInNeedPercent) && table_.index_bytes() == before) {
    if (MergeLast(/*squeeze=*/false)) continue;
    contraction_pause_ = kPauseAfterNoRoom;
    break;
  }
  return table_.index_bytes() != before;
}

// So few that the merged bucket needs no chain, and no memory of the heap, of which there is none.
std::optional<uint64_t> Shard::ThinForMerge(const BucketChain& parent, const BucketChain& child) {
  for (uint64_t evicted = 0;; ++evicted) {
    LocalSpace space = LocalSpaceOf(parent);
    uint32_t slots = 0;
    bool fits = true;
    struct Oldest {
      const BucketChain* chain = nullptr;
      SlotPlace place;
      uint32_t age = 0;
    };
    Oldest oldest;        // of all
    Oldest oldest_local;  // of those in the buckets
    for (const BucketChain* chain : {&parent, &child}) {
      chain->AnyOf([&](SlotPlace place, Slot slot) {
        ++slots;
        const bool local = LiesIn(*chain, slot);
        if (local && chain == &child && fits) fits = space.Take(ItemBytesOf(slot)).has_value();
        if (!MayEvict(slot)) return false;
        const uint32_t age =
            stamps_.AgeOf(stamps_.Get(ToNumber(chain->bucket()), CellOf(*chain, place)));
        if (oldest.chain == nullptr || age > oldest.age) oldest = {chain, place, age};
        if (local && (oldest_local.chain == nullptr || age > oldest_local.age)) {
          oldest_local = {chain, place, age};
        }
        return false;
      });
    }
    if (fits && slots <= kSlotsPerHeader) return evicted;
    const Oldest& going = fits ? oldest : oldest_local;
    if (going.chain == nullptr) return std::nullopt;
    Evict(*going.chain, going.place);
  }
}

uint64_t Shard::SqueezeIndex() {
  const uint32_t per_segment = region_.geometry().buckets_per_segment();
  if (table_.count() <= per_segment) return 0;
  const uint32_t until = (table_.count() - 1) / per_segment * per_segment;
  uint64_t done = 0;
  while (table_.count() > until) {
    const uint32_t last = table_.count() - 1;
    const std::optional<uint64_t> evicted =
        ThinForMerge(ChainAt(BucketIndex{last - std::bit_floor(last)}), ChainAt(BucketIndex{last}));
    if (!evicted || !MergeLast(/*squeeze=*/true)) return done;
    done += *evicted + 1;
  }
  return done;
}

}  // namespace kvd
