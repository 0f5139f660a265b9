// Evicting all that lies in a run of pages, where one item's memory will not do.
//
// A run costs more than the old item for whose sake it is looked at: what lies beside it may have
// been used just now. So runs are compared, by their age: what a run's bytes would lose in hits is
// the sum of what each would, and that is one in so many uses as its item is old. The age of a run
// is that of an item of as many bytes that would lose as much: the harmonic mean over its bytes,
// of which free ones lose nothing.
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "server/store/shard.h"

namespace kvd {
namespace {

// Items that one run may hold.
constexpr uint64_t kItemsPerRunMax = 65'536;
// Items that are looked at in runs around candidates before the oldest of these runs is taken.
constexpr uint64_t kItemsLookedAtMax = 128;
// Pages that are searched for any run that can be cleared, at a time and by one write.
constexpr uint64_t kPagesSearchedMax = 8192;
constexpr uint64_t kPagesSearchedPerWriteMax = 4 * kPagesSearchedMax;
// Items whose age one write looks at, and one more for so many bytes that are to be written.
constexpr uint64_t kItemsLookedAtPerWriteMax = 2 * kItemsPerRunMax;
constexpr uint64_t kBytesPerLookMore = 64;

}  // namespace

void Shard::PageRun::Add(const PageRun& neighbour) {
  begin = std::min(begin, neighbour.begin);
  bytes += neighbour.bytes;
  heat += neighbour.heat;
  objects.insert(objects.end(), neighbour.objects.begin(), neighbour.objects.end());
}

Shard::Target Shard::TargetAt(RegionOffset object) const {
  std::string_view key = items_.KeyAt(object);
  // One that is damaged may say any length.
  if (!region_.geometry().Contains(region_.OffsetOf(key.data()), key.size())) key = {};
  const uint64_t hash = HashKey(key, region_.geometry().hash_seed());
  Target target{.chain = ChainOf(hash), .place = {}};
  target.place = FindPlace(target.chain, key, hash);
  if (target.place && LocationOf(target.chain.SlotAt(*target.place)) != object) {
    target.place.reset();
  }
  return target;
}

void Shard::GrantSearch(uint64_t bytes) {
  items_to_look_at_ = kItemsLookedAtPerWriteMax + bytes / kBytesPerLookMore;
  pages_to_search_ = kPagesSearchedPerWriteMax;
}

// What lies next to `at`, on the side of it that is asked for, as far as it is of the shard's zone,
// in which alone the shard takes what it has cleared. nullopt: nothing is, or it cannot be cleared.
std::optional<Shard::PageRun> Shard::RunAt(RegionOffset at, Side side) {
  const PageAllocator& pages = region_.pages();
  const uint64_t page = side == Side::kBefore ? ToBytes(at) - kPageBytes : ToBytes(at);
  if (!pages.IsIn(RegionOffset{page}, shard_)) return std::nullopt;
  const std::optional<Heap::Extent> span = heap_.ExtentAt(RegionOffset{page});
  PageRun run;
  uint64_t end = 0;
  if (span) {
    run.begin = ToBytes(span->begin);
    end = run.begin + span->bytes;
    heap_.AppendObjects(RegionOffset{page}, run.objects);
  } else if (side == Side::kBefore) {
    run.begin = ToBytes(at) - pages.FreeBytesBefore(at);
    end = ToBytes(at);
  } else {
    run.begin = ToBytes(at);
    end = run.begin + pages.FreeBytesFrom(at);
  }
  if (run.begin == end) return std::nullopt;
  run.begin = std::max(run.begin, ToBytes(pages.ZoneBegin(shard_)));
  run.bytes = std::min(end, ToBytes(pages.ZoneEnd(shard_))) - run.begin;
  items_to_look_at_ -= std::min<uint64_t>(items_to_look_at_, run.objects.size());
  items_looked_at_.Add(run.objects.size());
  for (const RegionOffset object : run.objects) {
    if (IsEvictableItem(object)) {
      const Target target = TargetAt(object);
      if (!target.place) return std::nullopt;
      run.heat += HeatOf(target.chain, *target.place);
    } else if (const auto chain = ClearableChainWith(object)) {
      chain->AnyOf([&](SlotPlace place, Slot) {
        if (place.header == object) run.heat += HeatOf(*chain, place);
        return false;
      });
    } else {
      return std::nullopt;
    }
  }
  return run;
}

// Half a stamp is what an item that was used just now is old on average.
double Shard::HeatOf(const BucketChain& chain, SlotPlace place) const {
  const uint32_t age = stamps_.AgeOf(stamps_.Get(ToNumber(chain.bucket()), CellOf(chain, place)));
  return static_cast<double>(ItemBytesOf(chain.SlotAt(place))) / (age + 0.5);
}

// The chain to which the overflow header at `object` belongs; nullopt: it is none, or of a chain
// that has items that cannot go. It may be memory that was taken for a header, or for anything as
// large, and holds what was there before: so nothing in it is believed.
std::optional<BucketChain> Shard::ClearableChainWith(RegionOffset object) const {
  if (!heap_.IsOfClass(object, kBucketHeaderBytes)) return std::nullopt;
  const auto& slots = reinterpret_cast<const BucketHeader*>(region_.At(object))->slots;
  const auto* const some = std::find_if(std::begin(slots), std::end(slots),
                                        [](Slot slot) { return slot != kEmptySlot; });
  if (some == std::end(slots)) return std::nullopt;
  const uint64_t at = ToBytes(LocationOf(*some));
  const uint64_t bytes = ItemBytesOf(*some);
  if (at >= region_.bytes() || bytes > region_.bytes() - at) return std::nullopt;
  ItemView item;
  if (JudgeItem(std::span<const std::byte>(region_.At(RegionOffset{at}), bytes),
                {.incarnation = region_.geometry().incarnation,
                 .location = RegionOffset{at},
                 .key = {},
                 .held_version = 0},
                item) != ItemVerdict::kCurrent) {
    return std::nullopt;
  }
  const uint64_t hash = HashKey(item.key, region_.geometry().hash_seed());
  if (ShardOf(hash, region_.geometry().shard_count) != shard_) return std::nullopt;
  BucketChain chain = ChainOf(hash);
  bool linked = false;
  const bool stays = chain.AnyOf([&](SlotPlace place, Slot slot) {
    linked = linked || place.header == object;
    return place.header != chain.place() && !MayEvict(slot);
  });
  if (stays || !linked) return std::nullopt;
  return chain;
}

// Grows from the span at `at` to `bytes` or more, each time by its older neighbour.
std::optional<Shard::PageRun> Shard::RunAround(RegionOffset at, uint64_t bytes) {
  std::optional<PageRun> run = RunAt(at, Side::kFrom);
  if (!run) return std::nullopt;
  std::optional<PageRun> before, after;
  for (bool look_before = true, look_after = true; run->bytes < bytes;) {
    if (look_before) before = RunAt(RegionOffset{run->begin}, Side::kBefore);
    if (look_after) after = RunAt(RegionOffset{run->begin + run->bytes}, Side::kFrom);
    if (!before && !after) return std::nullopt;
    look_before = before && (!after || before->age() >= after->age());
    look_after = !look_before;
    run->Add(look_before ? *before : *after);
    if (run->objects.size() > kItemsPerRunMax || items_to_look_at_ == 0) return std::nullopt;
  }
  return run;
}

// All that lies in the aligned segment that `at` is in, or reaches into it.
std::optional<Shard::PageRun> Shard::SegmentAround(RegionOffset at) {
  const uint64_t begin = ToBytes(at) / kSegmentBytes * kSegmentBytes;
  std::optional<PageRun> run = RunAt(at, Side::kFrom);
  while (run && (run->begin > begin || run->begin + run->bytes < begin + kSegmentBytes)) {
    const bool before = run->begin > begin;
    const RegionOffset edge{before ? run->begin : run->begin + run->bytes};
    const std::optional<PageRun> more = RunAt(edge, before ? Side::kBefore : Side::kFrom);
    if (!more || run->objects.size() > kItemsPerRunMax || items_to_look_at_ == 0) {
      return std::nullopt;
    }
    run->Add(*more);
  }
  return run;
}

std::optional<Shard::PageRun> Shard::OldestRun(uint64_t bytes) {
  std::vector<EvictionCandidate> by_age;
  for (size_t i = 0; i < pool_.size(); ++i) by_age.push_back(pool_[i]);
  std::sort(by_age.begin(), by_age.end(),
            [&](const EvictionCandidate& a, const EvictionCandidate& b) {
              return stamps_.AgeOf(a.stamp) > stamps_.AgeOf(b.stamp);
            });
  std::optional<PageRun> oldest;
  uint64_t looked_at = 0;
  for (const EvictionCandidate& candidate : by_age) {
    if (looked_at >= kItemsLookedAtMax || items_to_look_at_ == 0) break;
    const RegionOffset at = LocationOf(candidate.slot);
    std::optional<PageRun> run = RunAround(at, Heap::RunFor(bytes));
    if (!run) {
      looked_at += kItemsLookedAtMax / EvictionPool::kSizeMax;
      if (items_to_look_at_ != 0 && !heap_.WouldDo(at, bytes)) pool_.Forget(candidate.slot);
      continue;
    }
    looked_at += run->objects.size();
    if (!oldest || run->age() > oldest->age()) oldest = std::move(run);
  }
  return oldest;
}

// What lies at `at`, a page of the shard's zone, and in it: how long it is, or 0 if it cannot be
// cleared; adds its items to `objects`.
uint64_t Shard::ClearableFrom(RegionOffset at, std::vector<RegionOffset>& objects) const {
  const uint64_t left = ToBytes(region_.pages().ZoneEnd(shard_)) - ToBytes(at);
  const std::optional<Heap::Extent> span = heap_.ExtentAt(at);
  if (!span) return std::min(left, region_.pages().FreeBytesFrom(at));
  const auto first = static_cast<ptrdiff_t>(objects.size());
  heap_.AppendObjects(at, objects);
  const bool all = std::all_of(objects.begin() + first, objects.end(), [this](RegionOffset object) {
    return IsEvictableItem(object) || ClearableChainWith(object);
  });
  return all ? std::min(left, ToBytes(span->begin) + span->bytes - ToBytes(at)) : 0;
}

// The first run that can be cleared, whatever the age of what lies there, from somewhere in the
// shard's zone on.
uint64_t Shard::EvictAnyRun(uint64_t bytes) {
  std::vector<RegionOffset> objects;
  const RegionOffset begin = region_.pages().ZoneBegin(shard_);
  const RegionOffset end = region_.pages().ZoneEnd(shard_);
  if (begin == end) return 0;
  const uint64_t pages = (ToBytes(end) - ToBytes(begin)) / kPageBytes;
  const uint64_t searched_max = std::min({pages, kPagesSearchedMax, pages_to_search_});
  RegionOffset at = begin + random_.Uniform(pages) * kPageBytes;
  uint64_t run = 0;
  for (uint64_t searched = 0; searched < searched_max;) {
    const uint64_t clearable = ClearableFrom(at, objects);
    const uint64_t passed = std::max<uint64_t>(clearable, kPageBytes);
    run = clearable == 0 || objects.size() > kItemsPerRunMax ? 0 : run + clearable;
    if (run == 0) objects.clear();
    if (run >= bytes && !objects.empty()) return EvictObjects(objects);
    at = at + passed;
    searched += passed / kPageBytes;
    pages_to_search_ -= std::min(pages_to_search_, passed / kPageBytes);
    if (at < end) continue;
    at = begin;
    run = 0;
    objects.clear();
  }
  return 0;
}

uint64_t Shard::EvictObjects(const std::vector<RegionOffset>& objects) {
  const uint64_t before = rearranged_;
  for (const RegionOffset object : objects) {
    // With an overflow header others of the list may have gone, and all of their spans. What has
    // gone alone is still what it was, but named by nothing.
    if (!heap_.Contains(object)) continue;
    if (!IsEvictableItem(object)) {
      EvictHeader(object);
      continue;
    }
    const Target target = TargetAt(object);
    if (target.place) Evict(target.chain, *target.place);
  }
  return rearranged_ - before;
}

// As many items of its chain as let it do without the header: the oldest, as another one comes to
// the place of each. What the header names may be the youngest of all, and of any size.
void Shard::EvictHeader(RegionOffset object) {
  for (auto chain = ClearableChainWith(object); chain; chain = ClearableChainWith(object)) {
    std::optional<SlotPlace> oldest;
    uint32_t oldest_age = 0;
    chain->AnyOf([&](SlotPlace place, Slot) {
      const uint32_t age =
          stamps_.AgeOf(stamps_.Get(ToNumber(chain->bucket()), CellOf(*chain, place)));
      if (!oldest || age > oldest_age) oldest = place;
      oldest_age = std::max(oldest_age, age);
      return false;
    });
    Evict(*chain, *oldest);
  }
}

// An object of the heap is an item, an overflow header, or memory that was reserved or is held.
bool Shard::IsEvictableItem(RegionOffset object) const {
  if (reserved_.count(ToBytes(object)) != 0 || held_.Contains(object)) return false;
  if (pinned_ != kEmptySlot && LocationOf(pinned_) == object) return false;
  if (!heap_.IsOfClass(object, kBucketHeaderBytes)) return true;
  // As large as a header: only an item verifies as one.
  ItemView item;
  return JudgeItem(std::span<const std::byte>(region_.At(object), kBucketHeaderBytes),
                   {.incarnation = region_.geometry().incarnation,
                    .location = object,
                    .key = {},
                    .held_version = 0},
                   item) == ItemVerdict::kCurrent;
}

}  // namespace kvd
