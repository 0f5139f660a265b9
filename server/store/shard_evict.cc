// Making room by evicting what was not used for long (--evict=lru).
//
// What must go depends on where room is wanted. A small item can take the place of one in its own
// bucket. Anything else takes the heap's: there the oldest of a sample goes, if its memory will do,
// or what lies around an old one, so that a run of pages is free (shard_evict_run.cc): whichever is
// older. Or it takes the index's, if what lies in buckets is older: a segment is squeezed out of
// it, at the cost of the oldest items of its buckets and of those that they are merged with. Nobody
// is asked to wait: a write evicts by itself, within a bound.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "server/store/shard.h"

namespace kvd {
namespace {

// Items that one write may evict.
constexpr uint64_t kEvictedPerWriteMax = 65'536;
// And one more for so many bytes that are to be written: where small items have to go for large
// ones, what the write takes by itself grows with it.
constexpr uint64_t kBytesPerEvictionMore = 64;
// Heap items that are met, and buckets that are looked at for them, before one is evicted.
constexpr uint32_t kSampledItems = 8;
constexpr uint32_t kSampledBucketsMax = 8;
// And objects that are looked at where those buckets held few of the heap's.
constexpr uint32_t kSampledObjectsMax = 16;
constexpr uint32_t kSampledObjectsBeforeSqueeze = 32;
// And of which it is asked whether their memory will do, where none of the pool's will.
constexpr uint32_t kSampledForSizeMax = 32;
// One in so many bytes of the shard's are the index's at least when it is squeezed for its age.
constexpr uint64_t kIndexShare = 4;
// And for whole pages whatever its share, if what it holds is so many times as old as what would
// go.
constexpr double kMuchOlder = 8;
// A candidate of that part of the oldest one's age goes without a look at what lies around others.
constexpr double kNearlyOldest = 0.75;
// So does one of a small item's own bucket: no memory is nearer at hand.
constexpr double kOldEnough = 0.5;
// Samples that are taken before a write looks for any run, whatever its age.
constexpr uint32_t kRoundsMax = 4;
// Segments around old items that are tried before the index does without.
constexpr uint32_t kSegmentsTriedMax = 8;

}  // namespace

void Shard::NoteUse(const BucketChain& chain, Slot slot) {
  chain.AnyWithTag(TagOf(slot), [&](SlotPlace place, Slot there) {
    if (there != slot) return false;
    stamps_.Use(ToNumber(chain.bucket()), CellOf(chain, place));
    return true;
  });
}

void Shard::NoteHit(uint64_t hash) {
  if (!evicts_) return;
  const BucketChain chain = ChainOf(hash);
  chain.AnyWithTag(SlotTag(hash), [&](SlotPlace place, Slot) {
    stamps_.Use(ToNumber(chain.bucket()), CellOf(chain, place));
    return false;
  });
}

bool Shard::MayEvict(Slot slot) const {
  return slot != pinned_ && (held_.empty() || !held_.Contains(LocationOf(slot)));
}

void Shard::Evict(BucketChain chain, SlotPlace place) {
  ++rearranged_;
  evicted_items_.Add(1);
  evicted_bytes_.Add(ItemBytesOf(chain.SlotAt(place)));
  Erase(chain, place, /*bring_home=*/false);
}

// What the shard makes room for at most: half of the region, and what its zone has beside the first
// buckets. For more it would evict all that it has, in vain.
uint64_t Shard::RoomMax() const {
  const PageAllocator& pages = region_.pages();
  const uint64_t zone = ToBytes(pages.ZoneEnd(shard_)) - ToBytes(pages.ZoneBegin(shard_));
  return std::min(region_.bytes() / 2, std::max<uint64_t>(zone, 2 * kSegmentBytes) - kSegmentBytes);
}

std::optional<RegionOffset> Shard::AllocateMakingRoom(Hash hash, uint64_t bytes) {
  const std::optional<RegionOffset> at =
      hash ? AllocateItem(ChainOf(*hash), bytes) : heap_.Allocate(bytes);
  if (at) [[likely]]
    return at;
  return AllocateInNeed(hash, bytes);
}

// There was no memory at first.
std::optional<RegionOffset> Shard::AllocateInNeed(Hash hash, uint64_t bytes) {
  const int64_t begun_ns = clock_.NowMonotonicNs();
  const absl::Cleanup count = [&] { evicting_ns_ += clock_.NowMonotonicNs() - begun_ns; };
  const auto allocate = [&] {
    return hash ? AllocateItem(ChainOf(*hash), bytes) : heap_.Allocate(bytes);
  };
  std::optional<RegionOffset> at;
  for (uint64_t segments = bytes / kSegmentBytes + 2; !at && segments > 0; --segments) {
    if (!ContractInNeed()) break;
    at = allocate();
  }
  if (at || !evicts_) return at;
  // Where others have memory left: for what the shard's own zone will hardly hold, and in the end.
  const auto allocate_anywhere = [&] {
    heap_.KeepToZone(false);
    at = allocate();
    heap_.KeepToZone(true);
    return at;
  };
  if (bytes > region_.bytes() / shard_count() / 2 && allocate_anywhere()) return at;
  if (bytes > RoomMax()) return at;
  GrantSearch(bytes);
  if (Heap::RunFor(bytes) > kSegmentBytes) {
    if (ClearWindow(Heap::RunFor(bytes))) at = allocate();
    return at ? at : allocate_anywhere();
  }
  const uint64_t evicted_max = kEvictedPerWriteMax + bytes / kBytesPerEvictionMore;
  for (uint64_t evicted = 0; !at && evicted < evicted_max;) {
    const uint64_t more = EvictFor(hash, bytes);
    if (more == 0) break;
    evicted += more;
    at = allocate();
  }
  return at ? at : allocate_anywhere();
}

// nullopt: it is no item that may go.
std::optional<EvictionCandidate> Shard::CandidateAt(RegionOffset object) const {
  if (!IsEvictableItem(object)) return std::nullopt;
  const auto [chain, place] = TargetAt(object);
  if (!place) return std::nullopt;
  const uint32_t bucket = ToNumber(chain.bucket());
  return EvictionCandidate{chain.SlotAt(*place), bucket,
                           stamps_.Get(bucket, CellOf(chain, *place))};
}

// Where nearly all items lie in their buckets, few buckets lead to those in the heap.
bool Shard::OfferSomeObject() {
  const std::optional<RegionOffset> object = heap_.SampleObject(random_);
  const auto candidate = object ? CandidateAt(*object) : std::nullopt;
  if (!candidate) return false;
  pool_.Offer(*candidate, [this](AccessStamps::Stamp stamp) { return stamps_.AgeOf(stamp); });
  return true;
}

// The oldest of some items whose memory will do, and which may find no room in the pool.
std::optional<EvictionCandidate> Shard::SampleWouldDo(uint64_t bytes) {
  std::optional<EvictionCandidate> oldest;
  uint32_t met = 0;
  for (uint32_t i = 0; i < kSampledForSizeMax && met < kSampledItems; ++i) {
    const std::optional<RegionOffset> object = heap_.SampleObject(random_);
    if (!object || !heap_.WouldDo(*object, bytes)) continue;
    const std::optional<EvictionCandidate> candidate = CandidateAt(*object);
    if (!candidate) continue;
    ++met;
    if (!oldest || stamps_.AgeOf(candidate->stamp) > stamps_.AgeOf(oldest->stamp)) {
      oldest = candidate;
    }
  }
  return oldest;
}

uint32_t Shard::SampleItems() {
  uint32_t met = 0;
  std::vector<uint32_t> local_ages;
  for (uint32_t i = 0; i < kSampledBucketsMax && met < kSampledItems; ++i) {
    const BucketChain chain =
        ChainAt(BucketIndex{static_cast<uint32_t>(random_.Uniform(table_.count()))});
    const uint32_t bucket = ToNumber(chain.bucket());
    chain.AnyOf([&](SlotPlace place, Slot slot) {
      const AccessStamps::Stamp stamp = stamps_.Get(bucket, CellOf(chain, place));
      if (LiesIn(chain, slot)) {
        local_ages.push_back(stamps_.AgeOf(stamp));
        return false;
      }
      if (!MayEvict(slot)) return false;
      ++met;
      pool_.Offer({slot, bucket, stamp},
                  [this](AccessStamps::Stamp of) { return stamps_.AgeOf(of); });
      return false;
    });
  }
  for (uint32_t i = 0; i < kSampledObjectsMax && met < kSampledItems; ++i) {
    if (OfferSomeObject()) ++met;
  }
  if (local_ages.empty()) return 0;
  const auto quarter = local_ages.begin() + static_cast<ptrdiff_t>(local_ages.size() * 3 / 4);
  std::nth_element(local_ages.begin(), quarter, local_ages.end());
  return *quarter;
}

// Where the candidate lies now; nullopt if it was used, moved or deleted since it was met.
std::optional<SlotPlace> Shard::PlaceOfCandidate(const EvictionCandidate& candidate) const {
  if (candidate.bucket >= table_.count()) return std::nullopt;
  const BucketChain chain = ChainAt(BucketIndex{candidate.bucket});
  std::optional<SlotPlace> found;
  chain.AnyWithTag(TagOf(candidate.slot), [&](SlotPlace place, Slot slot) {
    if (slot != candidate.slot) return false;
    found = place;
    return true;
  });
  if (!found || !MayEvict(candidate.slot)) return std::nullopt;
  if (stamps_.Get(candidate.bucket, CellOf(chain, *found)) != candidate.stamp) return std::nullopt;
  return found;
}

// The oldest candidate that is one still, of all or of those whose memory will do for `bytes`.
std::optional<size_t> Shard::OldestCandidate(uint64_t bytes, bool must_do) {
  std::optional<size_t> oldest;
  for (size_t i = 0; i < pool_.size();) {
    if (!PlaceOfCandidate(pool_[i])) {
      pool_.Remove(i);  // puts another one here, which was not looked at yet
      continue;
    }
    const bool does = !must_do || heap_.WouldDo(LocationOf(pool_[i].slot), bytes);
    if (does && (!oldest || stamps_.AgeOf(pool_[i].stamp) > stamps_.AgeOf(pool_[*oldest].stamp))) {
      oldest = i;
    }
    ++i;
  }
  return oldest;
}

std::optional<SlotPlace> Shard::OldestLocal(const BucketChain& chain) const {
  std::optional<SlotPlace> oldest;
  const uint32_t bucket = ToNumber(chain.bucket());
  const auto age = [&](SlotPlace place) {
    return stamps_.AgeOf(stamps_.Get(bucket, CellOf(chain, place)));
  };
  chain.AnyOf([&](SlotPlace place, Slot slot) {
    if (!LiesIn(chain, slot) || !MayEvict(slot)) return false;
    if (!oldest || age(place) > age(*oldest)) oldest = place;
    return false;
  });
  return oldest;
}

// Evicts one item, a run of them, or what stands in the way of a smaller index, so that room for
// `bytes` is there or nearer; how much was done.
uint64_t Shard::EvictFor(Hash hash, uint64_t bytes) {
  const uint32_t local_age = SampleItems();
  const bool small = hash && bytes <= local_item_bytes_max_;
  // Of its own bucket, for a small item.
  const std::optional<SlotPlace> local = small ? OldestLocal(ChainOf(*hash)) : std::nullopt;
  const auto evict_local_if_older_than = [&](double age) {
    if (!local) return false;
    const BucketChain chain = ChainOf(*hash);
    if (stamps_.AgeOf(stamps_.Get(ToNumber(chain.bucket()), CellOf(chain, *local))) < age) {
      return false;
    }
    Evict(chain, *local);
    return true;
  };
  if (local) {
    const std::optional<size_t> oldest = OldestCandidate(bytes, /*must_do=*/false);
    const double oldest_age = oldest ? stamps_.AgeOf(pool_[*oldest].stamp) : 0;
    if (evict_local_if_older_than(kOldEnough * oldest_age)) return 1;
  }
  bool may_squeeze = !small;
  for (uint32_t round = 0; round < kRoundsMax; ++round) {
    std::optional<Victim> victim = FindVictim(bytes);
    if (victim && may_squeeze && BucketsAreOlder(local_age, victim->age, bytes)) {
      // That costs many items, so the heap is looked at more closely before.
      for (uint32_t i = 0; i < kSampledObjectsBeforeSqueeze; ++i) OfferSomeObject();
      victim = FindVictim(bytes);
      if (victim && BucketsAreOlder(local_age, victim->age, bytes)) {
        if (const uint64_t went = SqueezeIndex(); went != 0) return went;
        may_squeeze = false;
      }
    }
    // What would go may be much younger than the oldest candidate.
    if (evict_local_if_older_than(victim ? victim->age : 0)) return 1;
    if (victim) {
      if (const uint64_t went = EvictVictim(*victim); went != 0) return went;
    }
    SampleItems();
  }
  // Whatever run is cleared now may have been used just now.
  if (may_squeeze && BucketsAreOlder(local_age, 0, bytes)) {
    if (const uint64_t went = SqueezeIndex(); went != 0) return went;
  }
  if (const uint64_t went = EvictAnyRun(Heap::RunFor(bytes)); went != 0) return went;
  return SqueezeIndex();
}

// Of the heap's items, for room of `bytes`: the oldest candidate whose memory will do, or all in a
// run of pages around one, whichever is older. nullopt: there is neither.
std::optional<Shard::Victim> Shard::FindVictim(uint64_t bytes) {
  const auto alone = [this](const EvictionCandidate& candidate) {
    const auto age = static_cast<double>(stamps_.AgeOf(candidate.stamp));
    return Victim{.age = age, .candidate = candidate, .run = {}};
  };
  const std::optional<size_t> oldest = OldestCandidate(bytes, /*must_do=*/false);
  if (!oldest) return std::nullopt;
  const double nearly_oldest = kNearlyOldest * alone(pool_[*oldest]).age;
  std::optional<Victim> victim;
  if (const auto fit = OldestCandidate(bytes, /*must_do=*/true)) victim = alone(pool_[*fit]);
  if (victim && victim->age >= nearly_oldest) return victim;
  std::optional<PageRun> run = OldestRun(bytes);
  // Old items side by side with young ones fill the pool, if there are many of them, and none of
  // them will do: their run is not to go for want of others.
  if (!victim && run && run->age() < nearly_oldest) {
    if (const auto fit = SampleWouldDo(bytes)) victim = alone(*fit);
  }
  if (run && (!victim || run->age() > victim->age)) {
    const double run_age = run->age();
    victim = Victim{.age = run_age, .candidate = {}, .run = std::move(run)};
  }
  return victim;
}

uint64_t Shard::EvictVictim(const Victim& victim) {
  if (victim.run) return EvictObjects(victim.run->objects);
  const std::optional<SlotPlace> place = PlaceOfCandidate(victim.candidate);
  pool_.Forget(victim.candidate.slot);
  if (!place) return 0;
  Evict(ChainAt(BucketIndex{victim.candidate.bucket}), *place);
  return 1;
}

// Where the index is large because of slots for the heap's items, little would be had from it.
bool Shard::BucketsAreFull() const {
  return wanted_local_bytes_.get() * 2 >= table_.count() * local_bytes_;
}

bool Shard::BucketsHoldMuch() const {
  const uint64_t index_bytes = table_.index_bytes();
  return index_bytes * kIndexShare >= index_bytes + heap_.held_bytes() && BucketsAreFull();
}

// Whether room for `bytes` should be made in the index rather than where something of that age is.
// Where the index is a small part of the memory, its local space holds some that nothing drives
// out, and that are older than the heap's: in mixes of small sizes it costs hits to go after them.
// Large values take it from them when they are much older.
bool Shard::BucketsAreOlder(uint32_t local_age, double age, uint64_t bytes) const {
  if (local_age <= age || !BucketsAreFull()) return false;
  return BucketsHoldMuch() ||
         (bytes > kLargestObjectBytes && local_age > kMuchOlder * std::max(age, 1.0));
}

// The index may need room as well: where many small items come after few large ones.
bool Shard::MakeRoomForSegment() {
  if (!evicts_) return false;
  GrantSearch(kSegmentBytes);
  const uint32_t local_age = SampleItems();
  for (uint32_t i = 0; i < kSegmentsTriedMax && items_to_look_at_ != 0; ++i) {
    const std::optional<size_t> oldest = OldestCandidate(0, /*must_do=*/false);
    if (!oldest || (BucketsHoldMuch() && stamps_.AgeOf(pool_[*oldest].stamp) < local_age))
      return false;
    const auto run = SegmentAround(LocationOf(pool_[*oldest].slot));
    // Beside an old item may lie a large one that was used just now.
    if (run && run->age() * kMuchOlder >= local_age) {
      const bool any = EvictObjects(run->objects) != 0;
      return heap_.ReleaseSpareSpan() || any;
    }
    pool_.Remove(*oldest);
  }
  return false;
}

}  // namespace kvd
