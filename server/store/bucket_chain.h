// One bucket's header with its overflow headers: finding slots, and every change of them that
// readers may see.
//
// A header is changed by writing slots and link, then {checksum, version} as one word; a reader
// that comes between sees a checksum that does not fit and reads again. Each change gives the
// headers a new version, the bucket's own one last. So a reader that walked the chain knows by one
// version everywhere that it saw the state of one moment; otherwise it reads the first header again.
// A slot that moves between headers is added where it goes before it is removed where it was. The
// filter in the bucket's own header never lacks a bit of a slot that a reader may rely on: it gains
// one with the version that tells of a new slot, whose item is not LIVE before, and loses one after
// the slot has gone.
//
// Only the first overflow header may have empty slots: one is linked in at the front, and holes
// further back are filled from the front.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/layout/bucket.h"
#include "common/protocol/match_tags.h"
#include "server/store/region.h"

namespace kvd {

struct SlotPlace {
  RegionOffset header{};
  uint32_t index = 0;
};

class BucketChain {
 public:
  // `place` is the bucket's, as BucketTable has it. Cheap: nothing is read yet.
  BucketChain(const Region& region, uint32_t shard, BucketIndex bucket, RegionOffset place)
      : region_(&region), shard_(shard), bucket_(bucket), place_(place) {}

  BucketIndex bucket() const { return bucket_; }
  RegionOffset place() const { return place_; }
  uint32_t depth() const { return DepthOf(HeaderAt(place_).link); }
  uint64_t filter() const { return ChainFilterOf(HeaderAt(place_).link); }
  Slot SlotAt(SlotPlace at) const { return HeaderAt(at.header).slots[at.index]; }

  // Calls visit(SlotPlace, Slot) for every slot in use until it returns true; returns whether it
  // did.
  template <typename Visit>
  bool AnyOf(Visit visit) const {
    for (RegionOffset at = place_; ToBytes(at) != 0; at = OverflowOf(HeaderAt(at).link)) {
      for (uint32_t i = 0; i < kSlotsPerHeader; ++i) {
        const Slot slot = HeaderAt(at).slots[i];
        if (slot != kEmptySlot && visit(SlotPlace{at, i}, slot)) return true;
      }
    }
    return false;
  }

  // The same for slots with this tag only.
  template <typename Visit>
  bool AnyWithTag(uint32_t tag, Visit visit) const {
    RegionOffset next = ChainFor(HeaderAt(place_).link, tag);
    for (RegionOffset at = place_; ToBytes(at) != 0; at = next) {
      if (at != place_) next = OverflowOf(HeaderAt(at).link);
      for (uint32_t rest = MatchTags(HeaderAt(at).slots, tag); rest != 0; rest &= rest - 1) {
        const uint32_t i = static_cast<uint32_t>(std::countr_zero(rest));
        if (visit(SlotPlace{at, i}, HeaderAt(at).slots[i])) return true;
      }
    }
    return false;
  }

  // Calls visit(RegionOffset) for every overflow header; it may reuse the header's memory.
  template <typename Visit>
  void ForEachOverflow(Visit visit) const {
    for (RegionOffset at = OverflowOf(HeaderAt(place_).link); ToBytes(at) != 0;) {
      const RegionOffset next = OverflowOf(HeaderAt(at).link);
      visit(at);
      at = next;
    }
  }

  // True if the next Insert needs memory for an overflow header.
  bool full() const;

  // Adds a slot. `spare` is memory for an overflow header, used exactly if full().
  void Insert(Slot slot, std::optional<RegionOffset> spare);

  // `slot` is of the same key, and so of the same tag.
  void Replace(SlotPlace at, Slot slot);

  // Removes a slot. The overflow header that became empty by it and is no longer linked, if any.
  std::optional<RegionOffset> Remove(SlotPlace at);

  // Replaces everything in one change of the bucket's header: `slots` in the header itself and in
  // new overflow headers at `overflow`, which are complete before. The old overflow headers are
  // linked no more. Also makes a new bucket.
  void Rewrite(uint32_t new_depth, std::span<const Slot> slots,
               std::span<const RegionOffset> overflow);

  // Makes the header here that of a bucket which has it at `from` so far, with these slots in its
  // place (kSlotsPerHeader of them). The chain is linked from both then. Versions go on.
  void TakeOver(const BucketChain& from, std::span<const Slot> slots);

  // How many overflow headers that many slots need.
  static size_t OverflowNeeded(size_t slots) {
    return slots <= kSlotsPerHeader ? 0 : (slots - 1) / kSlotsPerHeader;
  }

  // Whether the header's checksum holds.
  bool Verifies(RegionOffset header) const;

 private:
  const BucketHeader& HeaderAt(RegionOffset at) const {
    return *reinterpret_cast<const BucketHeader*>(region_->At(at));
  }
  uint64_t SeedOf(RegionOffset header) const;

  // Writes slots and link of `image`, then its checksum under the version that follows the one that
  // the bucket's own header has. Before that header itself the chain gets its version.
  void Write(RegionOffset header, const BucketHeader& image);
  // The link of the bucket's own header to a chain that is complete, with its filter.
  uint64_t LinkTo(uint32_t depth, RegionOffset front) const;

  std::optional<RegionOffset> RemoveFromFront(RegionOffset front, uint32_t index);

  const Region* region_;
  uint32_t shard_;
  BucketIndex bucket_;
  RegionOffset place_;
};

}  // namespace kvd
