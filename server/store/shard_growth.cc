// Growth by linear hashing (Litwin, "Linear hashing", VLDB 1980): one bucket split at a time, when
// the load asks for it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <optional>
#include <vector>

#include "common/base/hash.h"
#include "server/store/index_load.h"
#include "server/store/shard.h"

namespace kvd {
namespace {

// Writes split by themselves only above this, so that Work() does it outside of requests where it
// is called.
constexpr uint64_t kOverduePercent = 102;

// Only above this do items have to go for the index to grow (--evict=lru).
constexpr uint64_t kCrampedPercent = 150;

// After a split found no room, this many writes and steps of work pass before the next attempt.
constexpr uint32_t kPauseAfterNoRoom = 64;

}  // namespace

// What a split does with the parent's slots.
struct Shard::Split {
  std::vector<Slot> staying;
  std::vector<Slot> moving;  // as they are in the child
  std::vector<Slot> left;    // the parent's copies of local items that move
  std::vector<Slot> copied;  // and the child's; behind them `unknown`
  // Tags of items that are damaged so that nobody knows whose they are. They stay, and the child
  // gets for each tag one that is none, so that their keys are told to be damaged wherever they
  // belong.
  std::vector<uint32_t> unknown;
  // Of the first two, if the shard evicts.
  std::vector<AccessStamps::Stamp> staying_stamps;
  std::vector<AccessStamps::Stamp> moving_stamps;
};

bool Shard::LoadIsAbove(uint64_t percent, uint64_t buckets) const {
  return wanted_local_bytes_.get() * 100 * 100 >
             buckets * local_bytes_ * kLocalSpacePercentMax * percent ||
         item_count_.get() * 100 * 100 > buckets * kSlotsPerHundredBucketsMax * percent;
}

bool Shard::WantsSplit() const { return LoadIsAbove(100, table_.count()); }
bool Shard::OverdueForSplit() const { return LoadIsAbove(kOverduePercent, table_.count()); }
bool Shard::CrampedForSplit() const { return LoadIsAbove(kCrampedPercent, table_.count()); }

bool Shard::GrowthPaused() {
  if (growth_pause_ == 0) return false;
  --growth_pause_;
  return true;
}

bool Shard::Work() {
  const bool sweeping = SweepStep();
  if (!may_have_work_) return sweeping;
  GiveBackSegments();
  // Not before the index has what it waits for: guests that go into the heap would break the
  // segment up that has become free for it.
  if (WantsSplit()) return (!GrowthPaused() && SplitNext()) || sweeping;
  bool more = SendGuestsHome();
  if (IsSparse()) {
    more = ContractStep() || more;
  } else if (!more) {
    may_have_work_ = false;
  }
  return more || sweeping;
}

bool Shard::TakeOverflow(size_t count, std::vector<RegionOffset>& overflow) {
  while (overflow.size() < count) {
    const std::optional<RegionOffset> header = heap_.Allocate(kBucketHeaderBytes);
    if (!header) return false;
    overflow_headers_.Add(1);
    overflow.push_back(*header);
  }
  return true;
}

void Shard::FreeOverflow(RegionOffset header) {
  if (!EndLoan(header)) heap_.Free(header, kBucketHeaderBytes);
  overflow_headers_.Subtract(1);
}

// Believed, if the slot's tag bears it out.
std::optional<uint64_t> Shard::HashOfItem(Slot slot) const {
  const uint64_t hash = HashKey(items_.KeyOf(slot), region_.geometry().hash_seed());
  if (SlotTag(hash) == TagOf(slot)) [[likely]]
    return hash;
  const std::optional<Guests::Guest> guest = guests_.At(LocationOf(slot));
  return guest ? std::optional(guest->owner.hash) : std::nullopt;
}

Shard::Split Shard::PlanSplit(const BucketChain& parent, uint32_t new_depth) const {
  Split split;
  parent.AnyOf([&](SlotPlace place, Slot slot) {
    const std::optional<uint64_t> hash = HashOfItem(slot);
    if (!hash && std::count(split.unknown.begin(), split.unknown.end(), TagOf(slot)) == 0) {
      split.unknown.push_back(TagOf(slot));
    }
    const bool stays = !hash || LowBits(*hash, new_depth) == ToNumber(parent.bucket());
    (stays ? split.staying : split.moving).push_back(slot);
    if (evicts_) {
      (stays ? split.staying_stamps : split.moving_stamps)
          .push_back(stamps_.Get(ToNumber(parent.bucket()), CellOf(parent, place)));
    }
    return false;
  });
  return split;
}

// In the order of the slots, as Rewrite lays them out.
void Shard::SetStamps(const BucketChain& chain, const std::vector<AccessStamps::Stamp>& stamps) {
  const uint32_t bucket = ToNumber(chain.bucket());
  for (uint32_t i = 0; i < stamps.size(); ++i) {
    const bool shared = i > AccessStamps::kChainCell;
    const uint32_t cell = std::min(i, AccessStamps::kChainCell);
    if (shared && stamps_.AgeOf(stamps[i]) > stamps_.AgeOf(stamps_.Get(bucket, cell))) continue;
    stamps_.Set(bucket, cell, stamps[i]);
  }
}

// Items of the parent's local space need a copy in the child's. That has room for all that the
// parent had, unless items are held there since the bucket was last merged; then the heap has to
// help. Items of the heap stay where they are. False: no memory; what is in `copied` was taken.
bool Shard::PlaceInChild(const BucketChain& parent, const BucketChain& child, Split& split) {
  LocalSpace space = LocalSpaceOf(child);
  for (Slot& slot : split.moving) {
    if (!LiesIn(parent, slot)) continue;
    std::optional<RegionOffset> to = space.Take(ItemBytesOf(slot));
    if (!to) to = heap_.Allocate(ItemBytesOf(slot));
    if (!to) return false;
    split.left.push_back(slot);
    slot = PackSlot(TagOf(slot), ItemBytesOf(slot), *to);
    split.copied.push_back(slot);
  }
  for (const uint32_t tag : split.unknown) {
    std::optional<RegionOffset> at = space.Take(kItemBytesMin);
    if (!at) at = heap_.Allocate(kItemBytesMin);
    if (!at) return false;
    split.moving.push_back(PackSlot(tag, kItemBytesMin, *at));
    split.copied.push_back(split.moving.back());
    if (evicts_) split.moving_stamps.push_back(AccessStamps::Stamp{0});
  }
  return true;
}

// False: there is no memory for what is noted of so many buckets.
bool Shard::TakeNotes(uint32_t buckets) try {
  if (!expiry_.empty()) expiry_.Reserve(buckets);
  if (evicts_) stamps_.Reserve(buckets);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

// The order in which readers see it, so that none misses a key that is there: (1) the child is
// complete, its copies WRITING; (2) the parent's copies are DEAD: whoever comes to them looks
// again; (3) the parent's header no longer has the moved slots and says by its depth where they
// are; (4) the copies are LIVE; (5) the count leads new readers to the child directly.
bool Shard::SplitNext() {
  const uint32_t count = table_.count();
  const uint32_t new_depth = static_cast<uint32_t>(std::bit_width(count));
  growth_pause_ = kPauseAfterNoRoom;
  if (!TakeNotes(count + 1)) return false;
  if (!table_.PlaceNext()) {
    if (!CrampedForSplit() || !MakeRoomForSegment() || !table_.PlaceNext()) return false;
  }
  BucketChain parent = ChainAt(BucketIndex{count - std::bit_floor(count)});
  BucketChain child = ChainAt(BucketIndex{count});
  Split split = PlanSplit(parent, new_depth);
  if (!PlaceInChild(parent, child, split)) {
    for (const Slot copy : split.copied) FreeMemory(copy);
    return false;
  }
  std::vector<RegionOffset> parent_overflow;
  std::vector<RegionOffset> child_overflow;
  if (!TakeOverflow(BucketChain::OverflowNeeded(split.staying.size()), parent_overflow) ||
      !TakeOverflow(BucketChain::OverflowNeeded(split.moving.size()), child_overflow)) {
    for (const RegionOffset header : parent_overflow) FreeOverflow(header);
    for (const RegionOffset header : child_overflow) FreeOverflow(header);
    for (const Slot copy : split.copied) FreeMemory(copy);
    return false;
  }
  growth_pause_ = 0;

  std::vector<RegionOffset> old_overflow;
  parent.ForEachOverflow([&](RegionOffset header) { old_overflow.push_back(header); });
  for (size_t i = 0; i < split.left.size(); ++i) {
    items_.CopyNew(LocationOf(split.copied[i]), LocationOf(split.left[i]),
                   ItemBytesOf(split.left[i]));
    if (!LiesIn(child, split.copied[i])) local_items_.Subtract(1);
  }
  for (size_t i = split.left.size(); i < split.copied.size(); ++i) {
    items_.WriteNone(LocationOf(split.copied[i]));
    CountIn(child, split.copied[i]);
  }
  child.Rewrite(new_depth, split.moving, child_overflow);
  for (const Slot slot : split.left) items_.MarkDead(LocationOf(slot));
  parent.Rewrite(new_depth, split.staying, parent_overflow);
  for (const Slot slot : split.copied) items_.MarkLive(LocationOf(slot));
  table_.PublishCount(count + 1);
  if (evicts_) {
    SetStamps(parent, split.staying_stamps);
    SetStamps(child, split.moving_stamps);
  }
  if (!expiry_.empty()) expiry_.Share(count, ToNumber(parent.bucket()));

  for (const Slot slot : split.left) FreeItem(slot);
  for (const RegionOffset header : old_overflow) FreeOverflow(header);
  splits_.Add(1);
  BringHome(parent);
  BringHome(child);
  return true;
}

void Shard::BringHome(BucketChain chain) {
  std::vector<Move> moves;
  std::optional<LocalSpace> space;
  chain.AnyOf([&](SlotPlace place, Slot slot) {
    if (ItemBytesOf(slot) > local_item_bytes_max_ || LiesIn(chain, slot)) return false;
    if (!space) space = LocalSpaceOf(chain);
    if (const std::optional<RegionOffset> to = space->Take(ItemBytesOf(slot))) {
      moves.push_back({place, slot, PackSlot(TagOf(slot), ItemBytesOf(slot), *to)});
    }
    return false;
  });
  for (const Move& move : moves) Apply(chain, move);
  local_items_.Add(moves.size());
}

// In the order of Publish.
void Shard::Apply(BucketChain& chain, const Move& move) {
  items_.CopyNew(LocationOf(move.to), LocationOf(move.from), ItemBytesOf(move.from));
  items_.MarkDead(LocationOf(move.from));
  chain.Replace(move.place, move.to);
  items_.MarkLive(LocationOf(move.to));
  if (pinned_ == move.from) pinned_ = move.to;
  FreeItem(move.from);
}

ReadCost Shard::MeasureReads() const {
  ReadCost cost;
  for (uint32_t bucket = 0; bucket < table_.count(); ++bucket) {
    const BucketChain chain = ChainAt(BucketIndex{bucket});
    uint64_t walked = 0;
    double miss = 1;
    RegionOffset header = chain.place();
    chain.AnyOf([&](SlotPlace place, Slot slot) {
      if (place.header != header) {
        header = place.header;
        ++walked;
      }
      ++cost.items;
      cost.reads += 1 + walked + (LiesIn(chain, slot) ? 0 : 1);
      // Of the same tag by chance: the item, if it was not read with the bucket, and a
      // confirmation.
      miss += (LiesIn(chain, slot) ? 1 : 2) / 4096.0;
      return false;
    });
    miss += static_cast<double>(walked) * std::popcount(chain.filter()) / 16.0;
    cost.reads_per_miss += std::ldexp(miss, -static_cast<int>(chain.depth()));
  }
  return cost;
}

}  // namespace kvd
