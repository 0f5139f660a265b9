// A segment of the index moves to other pages, so that where it lay can become part of a longer
// run. Nothing in it changes: each bucket has the same slots, chain and items afterwards, the local
// ones at the same distance from the bucket.
//
// The order in which readers see it: (1) the buckets are complete at their new place, with LIVE
// copies of their local items; (2) the directory leads there; (3) the old headers are empty and
// send back to the directory, as after a merge (BucketTable); (4) the old items are DEAD. Until (3)
// both places are right: nothing is written to either in between. So readers that come along
// neither wait nor miss anything, however long a MiB takes.
#include <vector>

#include "server/store/shard.h"

namespace kvd {
namespace {

Slot Moved(Slot slot, RegionOffset from, RegionOffset to) {
  return PackSlot(TagOf(slot), ItemBytesOf(slot), to + (ToBytes(LocationOf(slot)) - ToBytes(from)));
}

}  // namespace

// The first bucket has no merged depth, so no header of it could send readers back. What is held
// has to stay where it is.
bool Shard::MayMoveSegment(uint32_t number) const {
  const RegionOffset at = table_.SegmentAt(number);
  return number != 0 && (held_.empty() || !held_.AnyIn(at, at + kSegmentBytes));
}

void Shard::MoveSegment(uint32_t number, RegionOffset to) {
  const RegionOffset from = table_.SegmentAt(number);
  const uint64_t step = region_.geometry().bucket_bytes;
  const uint32_t first = number * region_.geometry().buckets_per_segment();
  const auto bucket_at = [&](RegionOffset segment, uint64_t at) {
    return BucketChain(region_, shard_, BucketIndex{first + static_cast<uint32_t>(at / step)},
                       segment + at);
  };
  for (uint64_t at = 0; at < kSegmentBytes; at += step) {
    CopyBucket(bucket_at(from, at), bucket_at(to, at));
  }
  table_.MoveSegment(number, to);
  for (uint64_t at = 0; at < kSegmentBytes; at += step) {
    LeaveBucket(bucket_at(from, at), bucket_at(to, at));
  }
  if (ToBytes(LocationOf(pinned_)) - ToBytes(from) < kSegmentBytes) {
    pinned_ = Moved(pinned_, from, to);
  }
  ++rearranged_;
  segments_moved_.Add(1);
  region_.FreePages(from, kSegmentBytes);
}

void Shard::CopyBucket(BucketChain from, BucketChain to) {
  struct InChain {
    SlotPlace place;
    Slot slot;
  };
  std::vector<InChain> in_chain;
  Slot own[kSlotsPerHeader] = {};
  from.AnyOf([&](SlotPlace place, Slot slot) {
    const bool local = LiesIn(from, slot);
    const Slot moved = local ? Moved(slot, from.place(), to.place()) : slot;
    if (local) {
      items_.CopyNew(LocationOf(moved), LocationOf(slot), ItemBytesOf(slot));
      items_.MarkLive(LocationOf(moved));
    }
    if (place.header == from.place()) {
      own[place.index] = moved;
    } else if (local) {
      in_chain.push_back({place, moved});
    }
    return false;
  });
  for (const InChain& change : in_chain) from.Replace(change.place, change.slot);
  to.TakeOver(from, own);
}

void Shard::LeaveBucket(BucketChain from, const BucketChain& to) {
  from.Rewrite(MergedDepth(from.bucket()), {}, {});
  to.AnyOf([&](SlotPlace, Slot slot) {
    if (LiesIn(to, slot)) items_.MarkDead(LocationOf(Moved(slot, to.place(), from.place())));
    return false;
  });
}

}  // namespace kvd
