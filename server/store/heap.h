// A shard's heap: memory for items that do not lie in their bucket, and for overflow headers.
//
// Objects up to 32 KiB come in size classes from spans of whole pages; larger ones are whole pages
// of their own. All bookkeeping (bitmaps, lists, the map from pages to spans) is private memory, so
// a freed item keeps its DEAD header until its memory is used again.
//
// Why fragmentation does not run away. Inside: a class wastes less than 1/8 of an object, a span
// less than 1/16 at its end, a large object less than a page in more than eight: together below a
// fifth, about 6 % on average. Between: a new object goes to the fullest span of its class that has
// room, so that sparse spans run empty, and an empty span goes back to the page allocator, where it
// coalesces; one empty span is kept so that a put and a delete in turn do not take and give back
// pages each time, and even that one is given back before an allocation fails. So the heap never
// holds a page in which nothing lives, but for that span. The rest is spans that are not full:
// memory held for a class is at most its peak of live objects, and a page that one survivor holds
// is at least open to new objects of that class.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/counter.h"
#include "common/base/random.h"
#include "common/layout/units.h"
#include "server/store/page_allocator.h"
#include "server/store/size_classes.h"

namespace kvd {

// One thread at a time (the shard's owner), except for the counters.
class Heap {
 public:
  // `pages` outlives the heap, which is given those of its zone first. The heap's memory is not
  // given back when it is destroyed: the region goes with it.
  Heap(PageAllocator& pages, uint64_t region_bytes, uint32_t zone = 0);

  // Whether it takes pages of its zone only; at first it does not.
  void KeepToZone(bool only) { from_.only = only; }

  // Memory for `bytes`, aligned to 8. nullopt: no memory; nothing has changed.
  std::optional<RegionOffset> Allocate(uint64_t bytes);

  // Gives back what Allocate(bytes) returned. The bytes in the region stay as they are.
  void Free(RegionOffset object, uint64_t bytes);

  // Whether `location` is that of an object of this heap: not in a bucket, and not freed with all
  // around it.
  bool Contains(RegionOffset location) const { return SpanAt(location) != kNoSpan; }

  // Gives back the empty span that is kept, so that all memory in which nothing lives is the page
  // allocator's; whether there was one.
  bool ReleaseSpareSpan();

  // For those who make room. The span of pages that holds the object or page at `at`; nullopt: none
  // of this heap's. (Of an object of whole pages only the first one and the last lead to it.)
  struct Extent {
    RegionOffset begin{};
    uint64_t bytes = 0;
    uint64_t used_bytes = 0;  // by objects
  };
  std::optional<Extent> ExtentAt(RegionOffset at) const;
  // Adds the objects of that span. Throws std::bad_alloc.
  void AppendObjects(RegionOffset in_span, std::vector<RegionOffset>& objects) const;
  // Some object: one of a span that is chosen with as much chance as any. nullopt: met none.
  std::optional<RegionOffset> SampleObject(Random& random) const;
  // Some object of the span that holds the page at `in_span`. nullopt: it holds none.
  std::optional<RegionOffset> SampleObjectAt(RegionOffset in_span, Random& random) const;
  // Whether `object` is of the size class of `bytes`; whether its memory, once free, will do for
  // them.
  bool IsOfClass(RegionOffset object, uint64_t bytes) const;
  bool WouldDo(RegionOffset object, uint64_t bytes) const;
  // How long a run of free pages is with which Allocate(bytes) cannot fail.
  static uint64_t RunFor(uint64_t bytes);

  uint64_t held_bytes() const { return held_bytes_.get(); }  // pages that the heap holds
  uint64_t used_bytes() const { return used_bytes_.get(); }  // of these, asked for and not freed

  // The same by size, as SizeGroupOf has it; used: what objects of their classes occupy.
  uint64_t held_bytes_of(uint32_t group) const { return held_of_[group].get(); }
  uint64_t used_bytes_of(uint32_t group) const { return used_of_[group].get(); }

  // Calls visit(offset, bytes) for every object that is allocated, with the bytes that it may use.
  void ForEachObject(const std::function<void(RegionOffset, uint64_t)>& visit) const;

  // Internal names the first span whose bookkeeping does not fit together.
  absl::Status CheckInvariants() const;

 private:
  using SpanId = uint32_t;
  static constexpr SpanId kNoSpan = 0;
  static constexpr uint32_t kLargeObject = kSizeClassCount;  // "class" of a span that is one object
  static constexpr uint32_t kFullnessGroups = 4;
  static constexpr uint32_t kPagesPerChunk = kSegmentBytes / kPageBytes;

  struct Span {
    RegionOffset begin{};
    uint32_t pages = 0;  // 0: this id is free
    uint32_t size_class = 0;
    uint32_t used = 0;
    SpanId previous = kNoSpan;
    SpanId next = kNoSpan;
    std::array<uint64_t, kObjectsPerSpanMax / 64> used_bits{};
  };

  std::optional<RegionOffset> AllocateLarge(uint64_t bytes);
  std::optional<RegionOffset> SampleObjectOf(const Span& span, Random& random) const;
  SpanId SpanWithRoom(uint32_t size_class);
  SpanId NewSpan(uint64_t bytes, uint32_t size_class);
  bool TakeNotes();
  void ReleaseSpan(SpanId id);
  std::optional<RegionOffset> AllocatePages(uint64_t bytes);

  // The list that a span with room belongs to; full and empty ones are in none.
  SpanId* GroupOf(const Span& span);
  void Link(SpanId id);
  void Unlink(SpanId id);

  void SetPageEntries(const Span& span, SpanId id);
  SpanId& PageEntry(RegionOffset offset);
  SpanId SpanAt(RegionOffset offset) const;

  PageAllocator& pages_;
  PageAllocator::From from_;
  std::vector<Span> spans_;  // by id; id 0 is not used
  std::vector<SpanId> free_ids_;
  std::array<std::array<SpanId, kFullnessGroups>, kSizeClassCount> groups_{};
  SpanId spare_ = kNoSpan;  // the one empty span that is kept
  // Page -> span, in chunks of a MiB that are made when first used. Only the first and the last
  // page of a large object are in it.
  std::vector<std::unique_ptr<std::array<SpanId, kPagesPerChunk>>> page_map_;
  Counter held_bytes_;
  Counter used_bytes_;
  std::array<Counter, kSizeGroupCount> held_of_;
  std::array<Counter, kSizeGroupCount> used_of_;
};

}  // namespace kvd
