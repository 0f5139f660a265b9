// Room for what is longer than a segment of the index: planned first, then made.
//
// One run of that length has to be free, and what lies in the way of it is of three kinds: the
// heap's items, segments of the index, and what cannot go. So a stretch of the shard's zone is
// surveyed, a row of pieces, and the window of it that costs least is chosen (window_search.h). If
// there is none, the write is refused, and nothing has been evicted for it. Otherwise the segments
// in the window are moved out of it, one by one, to where a segment is free or the index has given
// its last one back; and the heap's items in it are evicted. What is done for a write so depends on
// its length alone: for each MiB of it at most one segment is squeezed out of the index and one is
// moved, and the heap loses what lies where the write will.
//
// Ages of small items are sampled, one in 64 KiB of the heap: a window has 16 of them or more.
#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "server/store/shard.h"
#include "server/store/window_search.h"

namespace kvd {
namespace {

// Small items of the heap that stand side by side in so many bytes are one piece, of the age of one
// of them.
constexpr uint64_t kSampledBytes = 64 << 10;
// How much of the zone one survey is of: so many times the window, and so much more.
constexpr uint64_t kWindowsSurveyed = 8;
constexpr uint64_t kSurveyedMore = 32 << 20;
// Surveys until a write is refused, and windows in each that turn out not to be clearable.
constexpr uint32_t kSurveysMax = 4;
constexpr uint32_t kTriesMax = 16;
// Pairs of buckets that are looked at for what a squeeze would cost.
constexpr uint32_t kSampledMerges = 16;
// Where the index is a small part of the memory, its items go only if they are so many times as
// old: it would grow again at the cost of others.
constexpr double kMuchOlder = 8;

}  // namespace

struct Shard::Survey {
  std::vector<MemoryPiece> pieces;
  WindowTerms terms;
};

bool Shard::ClearWindow(uint64_t bytes) {
  const PageAllocator& pages = region_.pages();
  const uint64_t zone = ToBytes(pages.ZoneEnd(shard_)) - ToBytes(pages.ZoneBegin(shard_));
  if (bytes > zone) return false;
  heap_.ReleaseSpareSpan();
  Survey survey;
  survey.terms.bytes = bytes;
  TermsOfSqueezing(survey.terms);
  const uint64_t length = std::min(zone, kWindowsSurveyed * bytes + kSurveyedMore);
  // One after the other, each with a window in common with the one before.
  uint64_t from = random_.Uniform((zone - length) / kPageBytes + 1) * kPageBytes;
  for (uint32_t i = 0; i < kSurveysMax; ++i) {
    SurveyMemory(pages.ZoneBegin(shard_) + from, pages.ZoneBegin(shard_) + from + length, survey);
    for (uint32_t tries = 0; tries < kTriesMax; ++tries) {
      const std::optional<Window> window = CheapestWindow(survey.pieces, survey.terms);
      if (!window || items_to_look_at_ == 0) break;
      std::vector<RegionOffset> objects;
      if (!ListObjects(*window, survey, objects)) continue;
      const RegionOffset begin{survey.pieces[window->first].begin};
      if (!MoveSegmentsOut(begin, begin + bytes)) return false;
      EvictObjects(objects);
      heap_.ReleaseSpareSpan();
      return true;
    }
    if (length == zone) break;
    from = from + length == zone ? 0 : std::min(from + length - bytes, zone - length);
  }
  return false;
}

// [begin, end), of the shard's zone, as a row of pieces. Of a large object only its first page and
// the last tell; one that begins before `begin` is met with its last.
void Shard::SurveyMemory(RegionOffset begin, RegionOffset end, Survey& survey) {
  constexpr uint32_t kNone = UINT32_MAX;
  const uint64_t first_segment = ToBytes(begin) / kSegmentBytes;
  std::vector<uint32_t> segments(ToBytes(end) / kSegmentBytes - first_segment + 1, kNone);
  for (uint32_t number = 0; number < table_.segments(); ++number) {
    const uint64_t i = ToBytes(table_.SegmentAt(number)) / kSegmentBytes - first_segment;
    if (i < segments.size()) segments[i] = number;
  }
  survey.pieces.clear();
  for (uint64_t at = ToBytes(begin); at < ToBytes(end);) {
    const uint32_t number = segments[at / kSegmentBytes - first_segment];
    MemoryPiece piece{.begin = at, .bytes = kPageBytes};
    if (number != kNone) {
      piece.bytes = kSegmentBytes - at % kSegmentBytes;
      if (MayMoveSegment(number)) piece.kind = MemoryPiece::Kind::kIndex;
    } else if (const auto span = heap_.ExtentAt(RegionOffset{at})) {
      piece = PieceOfHeap(*span);
    } else if (const uint64_t free = region_.pages().FreeBytesFrom(RegionOffset{at}); free != 0) {
      piece.bytes = free;
      piece.kind = MemoryPiece::Kind::kFree;
    }
    // What reaches beyond the zone is of use only as far as it is in it.
    const uint64_t piece_end = std::min(piece.end(), ToBytes(end));
    piece.begin = at;
    piece.bytes = piece_end - at;
    at = piece_end;
    survey.pieces.push_back(piece);
  }
}

// The piece that begins with that span: the span alone, or small items side by side.
MemoryPiece Shard::PieceOfHeap(Heap::Extent span) {
  MemoryPiece piece{.begin = ToBytes(span.begin), .bytes = span.bytes};
  uint64_t used_bytes = span.used_bytes;
  while (piece.bytes < kSampledBytes) {
    const auto next = heap_.ExtentAt(RegionOffset{piece.end()});
    if (!next || piece.bytes + next->bytes > kSampledBytes) break;
    piece.bytes += next->bytes;
    used_bytes += next->used_bytes;
  }
  const RegionOffset begin{piece.begin};
  const RegionOffset end{piece.end()};
  const auto reserved = reserved_.lower_bound(piece.begin);
  if ((!held_.empty() && held_.AnyIn(begin, end)) ||
      (reserved != reserved_.end() && reserved->first < piece.end())) {
    return piece;
  }
  const bool is_one = piece.bytes == span.bytes;
  const RegionOffset page =
      is_one ? begin : begin + random_.Uniform(piece.bytes / kPageBytes) * kPageBytes;
  const std::optional<RegionOffset> object = heap_.SampleObjectAt(page, random_);
  if (!object) return piece;
  const std::optional<uint32_t> age = AgeOfObject(*object);
  if (!age) return piece;
  piece.kind = MemoryPiece::Kind::kHeap;
  piece.heat = static_cast<double>(used_bytes) / (*age + 0.5);
  return piece;
}

// nullopt: it cannot go.
std::optional<uint32_t> Shard::AgeOfObject(RegionOffset object) const {
  if (IsEvictableItem(object)) {
    const Target target = TargetAt(object);
    if (!target.place) return std::nullopt;
    return stamps_.AgeOf(
        stamps_.Get(ToNumber(target.chain.bucket()), CellOf(target.chain, *target.place)));
  }
  const std::optional<BucketChain> chain = ClearableChainWith(object);
  if (!chain) return std::nullopt;
  return stamps_.AgeOf(stamps_.Get(ToNumber(chain->bucket()), AccessStamps::kChainCell));
}

// What the heap holds in the window. False: something of it cannot go, and its piece is an obstacle
// from now on.
bool Shard::ListObjects(const Window& window, Survey& survey, std::vector<RegionOffset>& objects) {
  for (size_t i = window.first; i < window.last; ++i) {
    MemoryPiece& piece = survey.pieces[i];
    if (piece.kind != MemoryPiece::Kind::kHeap) continue;
    const auto first = static_cast<ptrdiff_t>(objects.size());
    for (uint64_t at = piece.begin; at < piece.end();) {
      heap_.AppendObjects(RegionOffset{at}, objects);
      const Heap::Extent span = *heap_.ExtentAt(RegionOffset{at});
      at = ToBytes(span.begin) + span.bytes;
    }
    const auto looked_at = static_cast<uint64_t>(objects.end() - objects.begin() - first);
    items_to_look_at_ -= std::min(items_to_look_at_, looked_at);
    items_looked_at_.Add(looked_at);
    const bool all =
        items_to_look_at_ != 0 &&
        std::all_of(objects.begin() + first, objects.end(), [this](RegionOffset object) {
          return IsEvictableItem(object) || ClearableChainWith(object);
        });
    if (all) continue;
    piece.kind = MemoryPiece::Kind::kObstacle;
    return false;
  }
  return true;
}

// Those with high numbers may go by themselves, as the index gives its last ones back; so they are
// moved last.
bool Shard::MoveSegmentsOut(RegionOffset begin, RegionOffset end) {
  for (uint32_t number = 0; number < table_.segments(); ++number) {
    while (number < table_.segments()) {
      const RegionOffset at = table_.SegmentAt(number);
      if (at >= end || at + kSegmentBytes <= begin) break;
      if (const auto to = region_.pages().AllocateSegmentOutside(begin, end, shard_)) {
        MoveSegment(number, *to);
        break;
      }
      const uint32_t segments = table_.segments();
      SqueezeIndex();
      if (table_.segments() == segments) return false;
    }
  }
  return true;
}

void Shard::TermsOfSqueezing(WindowTerms& terms) {
  const uint32_t per_segment = region_.geometry().buckets_per_segment();
  const uint64_t segments_max = terms.bytes / kSegmentBytes + 2;
  const uint64_t merges_max =
      std::min<uint64_t>(segments_max * per_segment, table_.count() - per_segment);
  const uint32_t last = (table_.count() - 1) / per_segment;
  while (terms.squeezes_max < std::min<uint64_t>(last, segments_max) &&
         MayMoveSegment(last - terms.squeezes_max)) {
    ++terms.squeezes_max;
  }
  if (merges_max == 0) return;
  for (uint32_t i = 0; i < kSampledMerges; ++i) {
    const auto child = static_cast<uint32_t>(table_.count() - 1 - random_.Uniform(merges_max));
    terms.heat_of_squeeze += HeatOfMerge(ChainAt(BucketIndex{child - std::bit_floor(child)}),
                                         ChainAt(BucketIndex{child}));
  }
  terms.heat_of_squeeze *= static_cast<double>(per_segment) / kSampledMerges;
  if (!BucketsHoldMuch()) terms.heat_of_squeeze *= kMuchOlder;
}

// Of what ThinForMerge would evict, but for local space that is left over in between.
double Shard::HeatOfMerge(const BucketChain& parent, const BucketChain& child) const {
  struct Item {
    uint32_t age;
    uint64_t bytes;
    bool local;
  };
  std::vector<Item> items;
  uint64_t slots = 0;
  uint64_t local_bytes = 0;
  for (const BucketChain* chain : {&parent, &child}) {
    chain->AnyOf([&](SlotPlace place, Slot slot) {
      const uint32_t age =
          stamps_.AgeOf(stamps_.Get(ToNumber(chain->bucket()), CellOf(*chain, place)));
      const bool local = LiesIn(*chain, slot);
      ++slots;
      if (local) local_bytes += ItemBytesOf(slot);
      items.push_back({age, ItemBytesOf(slot), local});
      return false;
    });
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.age > b.age; });
  double heat = 0;
  for (const Item& item : items) {
    const bool cramped = local_bytes > local_bytes_;
    if (!cramped && slots <= kSlotsPerHeader) break;
    if (cramped && !item.local) continue;
    heat += static_cast<double>(item.bytes) / (item.age + 0.5);
    --slots;
    if (item.local) local_bytes -= item.bytes;
  }
  return heat;
}

}  // namespace kvd
