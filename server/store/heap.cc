#include "server/store/heap.h"

#include <algorithm>
#include <bit>
#include <new>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace kvd {
namespace {

constexpr uint64_t RoundUpToPages(uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace

Heap::Heap(PageAllocator& pages, uint64_t region_bytes, uint32_t zone)
    : pages_(pages),
      from_{.zone = zone},
      spans_(1),
      page_map_((region_bytes + kSegmentBytes - 1) / kSegmentBytes) {}

std::optional<RegionOffset> Heap::Allocate(uint64_t bytes) {
  if (bytes > kLargestObjectBytes) return AllocateLarge(bytes);
  const uint32_t size_class = SizeClassOf(bytes);
  const SpanId id = SpanWithRoom(size_class);
  if (id == kNoSpan) return std::nullopt;
  Span& span = spans_[id];
  const uint32_t word = ~span.used_bits[0] != 0 ? 0 : 1;
  const uint32_t object = word * 64 + static_cast<uint32_t>(std::countr_one(span.used_bits[word]));
  KVD_CHECK(object < ObjectsPerSpan(size_class));
  Unlink(id);
  span.used_bits[word] |= uint64_t{1} << (object % 64);
  ++span.used;
  Link(id);
  used_bytes_.Add(bytes);
  used_of_[SizeGroupOf(size_class)].Add(ObjectBytes(size_class));
  return span.begin + uint64_t{object} * ObjectBytes(size_class);
}

std::optional<RegionOffset> Heap::AllocateLarge(uint64_t bytes) {
  const SpanId id = NewSpan(bytes, kLargeObject);
  if (id == kNoSpan) return std::nullopt;
  spans_[id].used = 1;
  used_bytes_.Add(bytes);
  used_of_[SizeGroupOf(kLargeObject)].Add(uint64_t{spans_[id].pages} * kPageBytes);
  return spans_[id].begin;
}

void Heap::Free(RegionOffset object, uint64_t bytes) {
  const SpanId id = SpanAt(object);
  KVD_CHECK(id != kNoSpan);
  Span& span = spans_[id];
  used_bytes_.Subtract(bytes);
  used_of_[SizeGroupOf(span.size_class)].Subtract(span.size_class == kLargeObject
                                                      ? uint64_t{span.pages} * kPageBytes
                                                      : ObjectBytes(span.size_class));
  if (span.size_class == kLargeObject) {
    KVD_CHECK(object == span.begin && RoundUpToPages(bytes) == uint64_t{span.pages} * kPageBytes);
    ReleaseSpan(id);
    return;
  }
  KVD_CHECK(bytes <= kLargestObjectBytes && SizeClassOf(bytes) == span.size_class);
  const uint64_t distance = ToBytes(object) - ToBytes(span.begin);
  const uint32_t index = static_cast<uint32_t>(distance / ObjectBytes(span.size_class));
  const uint64_t bit = uint64_t{1} << (index % 64);
  KVD_CHECK(distance % ObjectBytes(span.size_class) == 0 &&
            (span.used_bits[index / 64] & bit) != 0);
  Unlink(id);
  span.used_bits[index / 64] &= ~bit;
  --span.used;
  if (span.used != 0) {
    Link(id);
    return;
  }
  ReleaseSpareSpan();
  spare_ = id;
}

Heap::SpanId Heap::SpanWithRoom(uint32_t size_class) {
  for (uint32_t group = kFullnessGroups; group-- > 0;) {
    if (groups_[size_class][group] != kNoSpan) return groups_[size_class][group];
  }
  if (spare_ != kNoSpan && spans_[spare_].size_class == size_class)
    return std::exchange(spare_, kNoSpan);
  return NewSpan(uint64_t{kSpanPages[size_class]} * kPageBytes, size_class);
}

Heap::SpanId Heap::NewSpan(uint64_t bytes, uint32_t size_class) {
  if (!TakeNotes()) return kNoSpan;
  const std::optional<RegionOffset> begin = AllocatePages(bytes);
  if (!begin) return kNoSpan;
  SpanId id;
  if (free_ids_.empty()) {
    id = static_cast<SpanId>(spans_.size());
    spans_.emplace_back();
  } else {
    id = free_ids_.back();
    free_ids_.pop_back();
  }
  Span& span = spans_[id];
  span = Span{.begin = *begin,
              .pages = static_cast<uint32_t>(RoundUpToPages(bytes) / kPageBytes),
              .size_class = size_class};
  SetPageEntries(span, id);
  held_bytes_.Add(uint64_t{span.pages} * kPageBytes);
  held_of_[SizeGroupOf(size_class)].Add(uint64_t{span.pages} * kPageBytes);
  return id;
}

// All that one more span asks for, but for what is small. False: there is no memory for it, and
// then it is as if there were none in the region.
bool Heap::TakeNotes() try {
  if (spans_.size() == spans_.capacity()) spans_.reserve(2 * spans_.size());
  if (free_ids_.capacity() < spans_.capacity()) free_ids_.reserve(spans_.capacity());
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Heap::ReleaseSpan(SpanId id) {
  Span& span = spans_[id];
  SetPageEntries(span, kNoSpan);
  const uint64_t bytes = uint64_t{span.pages} * kPageBytes;
  held_bytes_.Subtract(bytes);
  held_of_[SizeGroupOf(span.size_class)].Subtract(bytes);
  pages_.Free(span.begin, bytes);
  span = Span{};
  free_ids_.push_back(id);
}

bool Heap::ReleaseSpareSpan() {
  if (spare_ == kNoSpan) return false;
  ReleaseSpan(std::exchange(spare_, kNoSpan));
  return true;
}

std::optional<RegionOffset> Heap::AllocatePages(uint64_t bytes) {
  std::optional<RegionOffset> begin = pages_.Allocate(bytes, from_);
  if (!begin && ReleaseSpareSpan()) begin = pages_.Allocate(bytes, from_);
  return begin;
}

Heap::SpanId* Heap::GroupOf(const Span& span) {
  const uint32_t objects = ObjectsPerSpan(span.size_class);
  if (span.used == 0 || span.used == objects) return nullptr;
  return &groups_[span.size_class][span.used * kFullnessGroups / objects];
}

void Heap::Link(SpanId id) {
  Span& span = spans_[id];
  SpanId* group = GroupOf(span);
  if (group == nullptr) return;
  span.previous = kNoSpan;
  span.next = *group;
  if (*group != kNoSpan) spans_[*group].previous = id;
  *group = id;
}

void Heap::Unlink(SpanId id) {
  Span& span = spans_[id];
  SpanId* group = GroupOf(span);
  if (group == nullptr) return;
  if (span.previous != kNoSpan) {
    spans_[span.previous].next = span.next;
  } else {
    *group = span.next;
  }
  if (span.next != kNoSpan) spans_[span.next].previous = span.previous;
}

void Heap::SetPageEntries(const Span& span, SpanId id) {
  const uint32_t step = span.size_class == kLargeObject ? std::max(span.pages - 1, 1u) : 1;
  for (uint32_t page = 0; page < span.pages; page += step) {
    PageEntry(span.begin + uint64_t{page} * kPageBytes) = id;
  }
}

Heap::SpanId& Heap::PageEntry(RegionOffset offset) {
  auto& chunk = page_map_[ToBytes(offset) / kSegmentBytes];
  if (chunk == nullptr) chunk = std::make_unique<std::array<SpanId, kPagesPerChunk>>();
  return (*chunk)[ToBytes(offset) % kSegmentBytes / kPageBytes];
}

Heap::SpanId Heap::SpanAt(RegionOffset offset) const {
  const uint64_t chunk = ToBytes(offset) / kSegmentBytes;
  if (chunk >= page_map_.size() || page_map_[chunk] == nullptr) return kNoSpan;
  return (*page_map_[chunk])[ToBytes(offset) % kSegmentBytes / kPageBytes];
}

std::optional<Heap::Extent> Heap::ExtentAt(RegionOffset at) const {
  const SpanId id = SpanAt(at);
  if (id == kNoSpan) return std::nullopt;
  const Span& span = spans_[id];
  const uint64_t bytes = uint64_t{span.pages} * kPageBytes;
  const bool large = span.size_class == kLargeObject;
  return Extent{span.begin, bytes,
                large ? bytes : uint64_t{span.used} * ObjectBytes(span.size_class)};
}

void Heap::AppendObjects(RegionOffset in_span, std::vector<RegionOffset>& objects) const {
  const Span& span = spans_[SpanAt(in_span)];
  if (span.size_class == kLargeObject) {
    objects.push_back(span.begin);
    return;
  }
  for (uint32_t i = 0; i < ObjectsPerSpan(span.size_class); ++i) {
    if ((span.used_bits[i / 64] >> (i % 64) & 1) == 0) continue;
    objects.push_back(span.begin + uint64_t{i} * ObjectBytes(span.size_class));
  }
}

std::optional<RegionOffset> Heap::SampleObject(Random& random) const {
  return SampleObjectOf(spans_[random.Uniform(spans_.size())], random);
}

std::optional<RegionOffset> Heap::SampleObjectAt(RegionOffset in_span, Random& random) const {
  return SampleObjectOf(spans_[SpanAt(in_span)], random);
}

std::optional<RegionOffset> Heap::SampleObjectOf(const Span& span, Random& random) const {
  if (span.used == 0) return std::nullopt;
  if (span.size_class == kLargeObject) return span.begin;
  const uint32_t objects = ObjectsPerSpan(span.size_class);
  auto i = static_cast<uint32_t>(random.Uniform(objects));
  while ((span.used_bits[i / 64] >> (i % 64) & 1) == 0) i = (i + 1) % objects;
  return span.begin + uint64_t{i} * ObjectBytes(span.size_class);
}

bool Heap::IsOfClass(RegionOffset object, uint64_t bytes) const {
  const SpanId id = SpanAt(object);
  return id != kNoSpan && bytes <= kLargestObjectBytes &&
         spans_[id].size_class == SizeClassOf(bytes);
}

bool Heap::WouldDo(RegionOffset object, uint64_t bytes) const {
  const SpanId id = SpanAt(object);
  if (id == kNoSpan) return false;
  if (spans_[id].size_class != kLargeObject) return IsOfClass(object, bytes);
  return RunFor(bytes) <= uint64_t{spans_[id].pages} * kPageBytes;
}

uint64_t Heap::RunFor(uint64_t bytes) {
  if (bytes > kLargestObjectBytes) return RoundUpToPages(bytes);
  return uint64_t{kSpanPages[SizeClassOf(bytes)]} * kPageBytes;
}

void Heap::ForEachObject(const std::function<void(RegionOffset, uint64_t)>& visit) const {
  for (const Span& span : spans_) {
    if (span.pages == 0) continue;
    if (span.size_class == kLargeObject) {
      visit(span.begin, uint64_t{span.pages} * kPageBytes);
      continue;
    }
    const uint32_t object_bytes = ObjectBytes(span.size_class);
    for (uint32_t i = 0; i < ObjectsPerSpan(span.size_class); ++i) {
      if ((span.used_bits[i / 64] >> (i % 64) & 1) != 0) {
        visit(span.begin + uint64_t{i} * object_bytes, object_bytes);
      }
    }
  }
}

absl::Status Heap::CheckInvariants() const {
  uint64_t held = 0;
  uint64_t with_room = 0;
  std::array<uint64_t, kSizeGroupCount> held_of{}, used_of{};
  for (SpanId id = 1; id < spans_.size(); ++id) {
    const Span& span = spans_[id];
    if (span.pages == 0) continue;
    held += uint64_t{span.pages} * kPageBytes;
    held_of[SizeGroupOf(span.size_class)] += uint64_t{span.pages} * kPageBytes;
    used_of[SizeGroupOf(span.size_class)] +=
        span.size_class == kLargeObject ? uint64_t{span.pages} * kPageBytes
                                        : uint64_t{span.used} * ObjectBytes(span.size_class);
    if (SpanAt(span.begin) != id) {
      return absl::InternalError(
          absl::StrCat("heap: span at ", ToBytes(span.begin), " is not found by its address"));
    }
    if (span.size_class == kLargeObject) continue;
    const uint32_t bits =
        static_cast<uint32_t>(std::popcount(span.used_bits[0]) + std::popcount(span.used_bits[1]));
    const uint32_t objects = ObjectsPerSpan(span.size_class);
    if (bits != span.used || span.used > objects || (span.used == 0) != (id == spare_)) {
      return absl::InternalError(absl::StrCat("heap: span at ", ToBytes(span.begin), " has ", bits,
                                              " objects of ", objects, " and counts ", span.used));
    }
    if (span.used != 0 && span.used != objects) ++with_room;
  }
  uint64_t linked = 0;
  for (uint32_t size_class = 0; size_class < kSizeClassCount; ++size_class) {
    for (uint32_t group = 0; group < kFullnessGroups; ++group) {
      for (SpanId id = groups_[size_class][group]; id != kNoSpan; id = spans_[id].next) {
        const Span& span = spans_[id];
        if (span.size_class != size_class ||
            span.used * kFullnessGroups / ObjectsPerSpan(size_class) != group) {
          return absl::InternalError(
              absl::StrCat("heap: span at ", ToBytes(span.begin), " is in the wrong list"));
        }
        ++linked;
      }
    }
  }
  if (linked != with_room || held != held_bytes()) {
    return absl::InternalError(absl::StrCat("heap: ", linked, " spans listed of ", with_room,
                                            " with room; ", held, " bytes held, ", held_bytes(),
                                            " counted"));
  }
  for (uint32_t group = 0; group < kSizeGroupCount; ++group) {
    if (held_of[group] != held_bytes_of(group) || used_of[group] != used_bytes_of(group)) {
      return absl::InternalError(absl::StrCat(
          "heap: of size group ", group, " ", held_of[group], " bytes held and ", used_of[group],
          " used, ", held_bytes_of(group), " and ", used_bytes_of(group), " counted"));
    }
  }
  return absl::OkStatus();
}

}  // namespace kvd
