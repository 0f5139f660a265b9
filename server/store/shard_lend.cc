// Where the heap has no memory for a small item whose bucket is full, or for an overflow header,
// another bucket lends it of its local space. A reader is led there by the slot, or by the link, as
// into the heap; the index has no more READs by it than with memory of the heap.
//
// Where room became free of late is asked first, then a bounded number of buckets at random. So a
// store in which fewer than one in some hundred has room may say that it is full. (In order of the
// buckets those that wait for their split would be met together, and they are full for hundreds of
// buckets in a row.)
#include <optional>
#include <vector>

#include "server/store/shard.h"

namespace kvd {
namespace {

constexpr uint32_t kLendersTried = 256;

// After none was found at random, so many times nobody looks there.
constexpr uint32_t kPauseAfterNoLender = 64;

constexpr uint32_t kGuestsPerStep = 8;

// Guests go home when so much is free again: memory is not short any more.
constexpr uint64_t kPlentyBytes = kSegmentBytes;

}  // namespace

std::optional<RegionOffset> Shard::BorrowFrom(BucketIndex lender, uint64_t bytes,
                                              Guests::Owner owner) {
  LocalSpace space = LocalSpaceOf(ChainAt(lender));
  const std::optional<RegionOffset> at = space.Take(bytes);
  if (!at) return std::nullopt;
  guests_.Add({*at, static_cast<uint32_t>(bytes), lender, owner});
  borrowed_places_.Add(1);
  return at;
}

// First where room became free of late: in a full store there is hardly any elsewhere.
std::optional<RegionOffset> Shard::Borrow(uint64_t bytes, Guests::Owner owner,
                                          std::optional<BucketIndex> except) {
  const uint64_t bytes_max = owner.header_of ? local_bytes_ : local_item_bytes_max_;
  if (evicts_ || bytes > bytes_max) return std::nullopt;
  for (const BucketIndex lender : lenders_) {
    if (lender == except || ToNumber(lender) >= table_.count()) continue;
    if (const auto at = BorrowFrom(lender, bytes, owner)) return at;
  }
  if (lend_pause_ != 0 && bytes >= too_many_bytes_) {
    --lend_pause_;
    return std::nullopt;
  }
  for (uint32_t tried = 0; tried < kLendersTried; ++tried) {
    const BucketIndex lender{static_cast<uint32_t>(random_.Uniform(table_.count()))};
    if (lender == except) continue;
    if (const auto at = BorrowFrom(lender, bytes, owner)) return at;
  }
  lend_pause_ = kPauseAfterNoLender;
  too_many_bytes_ = bytes;
  return std::nullopt;
}

bool Shard::EndLoan(RegionOffset at) {
  if (guests_.empty()) return false;
  const std::optional<Guests::Guest> guest = guests_.Remove(at);
  if (!guest) return false;
  NoteLender(guest->lender);
  borrowed_places_.Subtract(1);
  return true;
}

bool Shard::MoveGuest(const Guests::Guest& guest, std::optional<BucketIndex> lender) {
  if (!guest.owner.header_of) return MoveGuestItem(guest, lender);
  // Where a damaged link no longer leads to it, it stays.
  return MoveChainToHeap(ChainAt(*guest.owner.header_of)) && !guests_.Contains(guest.at);
}

bool Shard::MoveGuestItem(const Guests::Guest& guest, std::optional<BucketIndex> lender) {
  BucketChain chain = ChainOf(guest.owner.hash);
  std::optional<SlotPlace> place;
  chain.AnyWithTag(SlotTag(guest.owner.hash), [&](SlotPlace at, Slot slot) {
    if (LocationOf(slot) != guest.at) return false;
    place = at;
    return true;
  });
  if (!place) return false;
  LocalSpace home = LocalSpaceOf(chain);
  std::optional<RegionOffset> to = home.Take(guest.bytes);
  if (to) local_items_.Add(1);
  if (!to) to = heap_.Allocate(guest.bytes);
  if (!to && lender) to = Borrow(guest.bytes, guest.owner, lender);
  if (!to) return false;
  const Slot from = chain.SlotAt(*place);
  Apply(chain, {*place, from, PackSlot(TagOf(from), ItemBytesOf(from), *to)});
  return true;
}

bool Shard::MoveChainToHeap(BucketChain chain) {
  std::vector<Slot> slots;
  chain.AnyOf([&](SlotPlace, Slot slot) {
    slots.push_back(slot);
    return false;
  });
  std::vector<RegionOffset> overflow;
  std::vector<RegionOffset> old_overflow;
  chain.ForEachOverflow([&](RegionOffset header) { old_overflow.push_back(header); });
  if (!TakeOverflow(BucketChain::OverflowNeeded(slots.size()), overflow)) {
    for (const RegionOffset header : overflow) FreeOverflow(header);
    return false;
  }
  chain.Rewrite(chain.depth(), slots, overflow);
  for (const RegionOffset header : old_overflow) FreeOverflow(header);
  ++rearranged_;
  return true;
}

// Its own items come first: each that lies there saves a READ of a cold GET, which a guest does
// not.
std::optional<RegionOffset> Shard::Reclaim(const BucketChain& chain, uint64_t bytes) {
  const RegionOffset end = chain.place() + region_.geometry().bucket_bytes;
  const LocalSpace now = LocalSpaceOf(chain);
  for (std::optional<Guests::Guest> guest = guests_.NextFrom(chain.place());
       guest && guest->at < end; guest = guests_.NextFrom(guest->at + guest->bytes)) {
    if (guest->owner.header_of || held_.Contains(guest->at)) continue;
    LocalSpace space = now;
    space.MarkFree(guest->at, guest->bytes);
    const std::optional<RegionOffset> at = space.Take(bytes);
    if (at && MoveGuest(*guest, chain.bucket())) return at;
  }
  return std::nullopt;
}

bool Shard::SendGuestsAway(const BucketChain& lender) {
  const RegionOffset end = lender.place() + region_.geometry().bucket_bytes;
  for (;;) {
    const std::optional<Guests::Guest> guest = guests_.NextFrom(lender.place());
    if (!guest || !(guest->at < end)) return true;
    if (!MoveGuest(*guest, lender.bucket())) return false;
  }
}

// From where it stopped on, so that those which cannot go do not stand in the way of the others.
bool Shard::SendGuestsHome() {
  if (guests_.empty() || region_.free_bytes() < kPlentyBytes) return false;
  bool any = false;
  for (uint32_t i = 0; i < kGuestsPerStep; ++i) {
    const std::optional<Guests::Guest> guest = guests_.NextFrom(next_to_go_home_);
    if (!guest) {
      next_to_go_home_ = RegionOffset{0};
      return any;
    }
    next_to_go_home_ = guest->at + guest->bytes;
    any = MoveGuest(*guest, std::nullopt) || any;
  }
  return !guests_.empty();
}

}  // namespace kvd
