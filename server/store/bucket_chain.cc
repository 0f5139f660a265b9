#include "server/store/bucket_chain.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/check.h"
#include "server/store/region_writes.h"

namespace kvd {
namespace {

// So many overflow headers have the version of their bucket; a longer chain would make every change
// of the bucket too dear.
constexpr int kSameVersionMax = 4;

constexpr uint64_t kFullFilter = 0xffff;

uint32_t SlotsUsed(const BucketHeader& header) {
  return static_cast<uint32_t>(std::count_if(std::begin(header.slots), std::end(header.slots),
                                             [](Slot slot) { return slot != kEmptySlot; }));
}

std::optional<uint32_t> FirstEmpty(const BucketHeader& header) {
  for (uint32_t i = 0; i < kSlotsPerHeader; ++i) {
    if (header.slots[i] == kEmptySlot) return i;
  }
  return std::nullopt;
}

uint32_t LastUsed(const BucketHeader& header) {
  uint32_t i = kSlotsPerHeader - 1;
  while (header.slots[i] == kEmptySlot) --i;
  return i;
}

}  // namespace

uint64_t BucketChain::SeedOf(RegionOffset header) const {
  const RegionOffset overflow = header == place_ ? RegionOffset{0} : header;
  return HeaderSeed(region_->geometry().incarnation, shard_, bucket_, overflow);
}

bool BucketChain::Verifies(RegionOffset header) const {
  return HeaderChecksum(HeaderAt(header), SeedOf(header)) == HeaderAt(header).checksum;
}

void BucketChain::Write(RegionOffset header, const BucketHeader& image) {
  BucketHeader next = image;
  next.version = HeaderAt(place_).version + 1;
  if (header == place_) {
    // What did not change in the chain follows, so that a reader finds one version everywhere.
    RegionOffset at = OverflowOf(next.link);
    for (int i = 0; ToBytes(at) != 0 && i < kSameVersionMax; ++i) {
      if (HeaderAt(at).version != next.version) Write(at, HeaderAt(at));
      at = OverflowOf(HeaderAt(at).link);
    }
  }
  next.checksum = HeaderChecksum(next, SeedOf(header));
  uint64_t words[sizeof(BucketHeader) / sizeof(uint64_t)];
  std::memcpy(words, &next, sizeof(next));
  std::byte* const to = region_->At(header);
  for (size_t i = 1; i < std::size(words); ++i) StoreWord(to + i * sizeof(uint64_t), words[i]);
  // Release: the word that makes the header valid comes after what it validates. A reader needs no
  // partner for it, as the checksum tells it the same; what follows on this change is ordered by
  // OrderStores.
  StoreWordRelease(to, words[0]);
  OrderStores();
}

uint64_t BucketChain::LinkTo(uint32_t depth, RegionOffset front) const {
  uint64_t filter = 0;
  RegionOffset at = front;
  for (; ToBytes(at) != 0 && filter != kFullFilter; at = OverflowOf(HeaderAt(at).link)) {
    for (const Slot slot : HeaderAt(at).slots) {
      if (slot != kEmptySlot) filter |= ChainFilterBit(TagOf(slot));
    }
  }
  return PackLink(depth, front, filter);
}

bool BucketChain::full() const {
  const BucketHeader& first = HeaderAt(place_);
  if (FirstEmpty(first)) return false;
  const RegionOffset front = OverflowOf(first.link);
  return ToBytes(front) == 0 || !FirstEmpty(HeaderAt(front));
}

void BucketChain::Insert(Slot slot, std::optional<RegionOffset> spare) {
  BucketHeader first = HeaderAt(place_);
  if (const std::optional<uint32_t> i = FirstEmpty(first)) {
    first.slots[*i] = slot;
    Write(place_, first);
    return;
  }
  const RegionOffset front = OverflowOf(first.link);
  if (!spare) {
    KVD_CHECK(ToBytes(front) != 0);
    BucketHeader header = HeaderAt(front);
    const std::optional<uint32_t> i = FirstEmpty(header);
    KVD_CHECK(i.has_value());
    header.slots[*i] = slot;
    Write(front, header);
    first.link = LinkTo(DepthOf(first.link), front);
    Write(place_, first);
    return;
  }
  BucketHeader header{};
  header.link = PackLink(DepthOf(first.link), front);
  header.slots[0] = slot;
  Write(*spare, header);
  first.link = LinkTo(DepthOf(first.link), *spare);
  Write(place_, first);
}

void BucketChain::Replace(SlotPlace at, Slot slot) {
  BucketHeader header = HeaderAt(at.header);
  header.slots[at.index] = slot;
  Write(at.header, header);
  if (at.header == place_) return;
  BucketHeader first = HeaderAt(place_);
  first.link = LinkTo(DepthOf(first.link), OverflowOf(first.link));
  Write(place_, first);
}

std::optional<RegionOffset> BucketChain::Remove(SlotPlace at) {
  const RegionOffset front = OverflowOf(HeaderAt(place_).link);
  if (at.header == front) return RemoveFromFront(front, at.index);
  if (ToBytes(front) == 0) {
    Replace(at, kEmptySlot);
    return std::nullopt;
  }
  // The hole is filled with a slot of the front before that one is taken away there.
  const uint32_t last = LastUsed(HeaderAt(front));
  BucketHeader header = HeaderAt(at.header);
  header.slots[at.index] = HeaderAt(front).slots[last];
  Write(at.header, header);
  return RemoveFromFront(front, last);
}

std::optional<RegionOffset> BucketChain::RemoveFromFront(RegionOffset front, uint32_t index) {
  BucketHeader header = HeaderAt(front);
  BucketHeader first = HeaderAt(place_);
  if (SlotsUsed(header) == 1) {
    first.link = LinkTo(DepthOf(first.link), OverflowOf(header.link));
    Write(place_, first);
    return front;
  }
  header.slots[index] = kEmptySlot;
  Write(front, header);
  first.link = LinkTo(DepthOf(first.link), front);
  Write(place_, first);
  return std::nullopt;
}

void BucketChain::TakeOver(const BucketChain& from, std::span<const Slot> slots) {
  BucketHeader header = HeaderAt(from.place_);
  StoreWord(region_->At(place_), uint64_t{header.version} << 32);
  std::copy_n(slots.begin(), kSlotsPerHeader, header.slots);
  Write(place_, header);
}

void BucketChain::Rewrite(uint32_t new_depth, std::span<const Slot> slots,
                          std::span<const RegionOffset> overflow) {
  KVD_CHECK(overflow.size() == OverflowNeeded(slots.size()));
  const size_t own = std::min<size_t>(slots.size(), kSlotsPerHeader);
  std::span<const Slot> rest = slots.subspan(own);
  // The last one of the chain first; the front, written last, takes what does not fill a header.
  RegionOffset next{0};
  for (size_t i = 0; i < overflow.size(); ++i) {
    const size_t used = std::min<size_t>(rest.size(), kSlotsPerHeader);
    BucketHeader header{};
    header.link = PackLink(new_depth, next);
    std::copy_n(rest.begin(), used, header.slots);
    rest = rest.subspan(used);
    Write(overflow[i], header);
    next = overflow[i];
  }
  BucketHeader first{};
  first.link = LinkTo(new_depth, next);
  std::copy_n(slots.begin(), own, first.slots);
  Write(place_, first);
}

}  // namespace kvd
