// A shard of the store: its part of the index and its heap. One writer: the poller that owns it.
// Readers are processes and NICs that see only the region and verify what they read; nothing here
// waits for them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/counter.h"
#include "common/base/random.h"
#include "common/layout/slot.h"
#include "common/protocol/judge_item.h"
#include "server/store/access_stamps.h"
#include "server/store/bucket_chain.h"
#include "server/store/bucket_table.h"
#include "server/store/eviction_pool.h"
#include "server/store/expiry_hints.h"
#include "server/store/guests.h"
#include "server/store/heap.h"
#include "server/store/held_items.h"
#include "server/store/item_writer.h"
#include "server/store/local_space.h"
#include "server/store/region.h"
#include "server/store/store_types.h"
#include "server/store/window_search.h"

namespace kvd {

class Shard {
 public:
  // The shard's first buckets and segment are made here: ResourceExhausted if there is no room even
  // for that. The region and the clock outlive the shard; the shard's memory is not given back to
  // the region.
  static absl::StatusOr<std::unique_ptr<Shard>> Create(Region& region, uint32_t shard,
                                                       const Clock& clock,
                                                       const ShardOptions& options = {});
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // All take 1 <= key.size() <= kKeyBytesMax and hash == HashKey(key, geometry.hash_seed()); the
  // caller has checked that and the value's limit. Key and value do not lie in the region, unless
  // in a reservation.
  //
  // An item whose expiry is not after the clock is absent for all of them, and gone once one of
  // them has come across it. A write with such an expiry takes place, and leaves no item behind.
  StoreResult Put(std::string_view key, uint64_t hash, std::string_view value,
                  const StoreOptions& options = {});
  StoreResult Delete(std::string_view key, uint64_t hash, const StoreOptions& options = {});

  // The following keep the item's extras; an expiry in `options` replaces the item's, user flags in
  // it are for a new item only.

  // Adds to a value that is a number in canonical decimal (no plus sign, no leading zeroes). No
  // item counts as 0.
  StoreResult Increment(std::string_view key, uint64_t hash, int64_t delta,
                        const StoreOptions& options);
  // Puts `piece` behind or before the value; without an item it becomes the value. kTooLarge: that
  // would be longer than `value_bytes_max`.
  enum class End : uint8_t { kBack, kFront };
  StoreResult Extend(std::string_view key, uint64_t hash, End end, std::string_view piece,
                     uint64_t value_bytes_max, const StoreOptions& options);
  // Gives the item the expiry in `options`, or none if there is none in it, and a new version.
  StoreResult Touch(std::string_view key, uint64_t hash, const StoreOptions& options);

  // kOk and `item` with views into the region (valid until the next call of this shard that
  // writes); kNotFound; kDamaged, if the key's item does not verify, or another one that may have
  // been the key's before its bytes changed.
  StoreStatus Find(std::string_view key, uint64_t hash, ItemView& item, Slot& slot);

  // Whether the key has an item that has not lapsed; changes nothing, and uses nothing.
  bool Peek(std::string_view key, uint64_t hash) const;

  // A PUT in two halves. Until Commit no reader sees anything; other writes of the same key may
  // come between, so the condition is judged in both. Whatever Commit returns, the reservation is
  // gone. kNoSpace from Commit: the index had no room for the key.
  StoreResult Reserve(std::string_view key, uint64_t hash, uint64_t value_len,
                      Reservation& reservation, const StoreOptions& options = {});
  StoreResult Commit(const Reservation& reservation);
  void Abort(const Reservation& reservation);

  // Keeps the memory of the item at `slot` (as Find returned it) from being reused until Release,
  // also if it is overwritten or deleted meanwhile: for a reader that could not get hold of a key
  // under constant overwriting. Holds count: as many Releases are needed. Release of what is not
  // held does nothing.
  void Hold(Slot slot);
  void Release(Slot slot);

  // Deletes the items whose keys begin with `prefix`, in a bounded stretch from `position` in
  // WalkOrder (common/protocol/geometry.h) on. Stretch after stretch, from position 0 until there
  // is no next one, meets every item that is there all the while, whatever is split and merged
  // meanwhile.
  struct Flushed {
    uint64_t items = 0;
    uint32_t next_position = 0;  // 0: that was the last stretch
  };
  Flushed Flush(std::string_view prefix, uint32_t position);
  // Whether Flush can have given that position: whether a bucket of this shard could begin there.
  bool MayFlushFrom(uint32_t position) const;
  uint32_t buckets() const { return table_.count(); }
  uint32_t number() const { return shard_; }
  uint32_t shard_count() const { return region_.geometry().shard_count; }

  // One step of deferred work: a bucket split if the load asks for one, or a few merges if it is
  // low; a few buckets of items whose time has come. True if there is more to do. Without calls of
  // it the writes do the splits themselves, a little later, and items that lapse keep their memory
  // until somebody asks for them.
  bool Work();

  // A client read a key with that hash by itself. Does nothing unless the shard evicts.
  void NoteHit(uint64_t hash);
  bool evicts() const { return evicts_; }

  // When Work will next have items to take away, by the clock; nullopt: no item expires.
  std::optional<uint64_t> next_sweep_unix_us() const;

  // To be called once per batch of requests, so that versions follow the clock without a system
  // call per write.
  void RefreshClock();
  uint64_t now_unix_us() const { return now_unix_us_; }  // as of then

  // How long writes have made room so far; the owner's thread. A write that has to looks at the
  // clock for it, twice.
  int64_t evicting_ns() const { return evicting_ns_; }

  // Brings the hash's bucket header into the cache, for a batch of requests whose keys are known
  // before their turn.
  void Prefetch(uint64_t hash) const;

  // Any thread.
  ShardStats stats() const;

  // Walks the whole index; the owner's thread.
  ReadCost MeasureReads() const;

  // Walks everything: every item verifies, is found by its key, lies in the right bucket; memory is
  // accounted for byte by byte, nothing overlaps. For tests, on the owner's thread; Internal names
  // the first thing that is wrong.
  absl::Status CheckInvariants() const;

 private:
  class InvariantChecker;

  // What a write of a key found out before it changed anything.
  struct Target {
    BucketChain chain;
    std::optional<SlotPlace> place;  // where the key is now
  };

  Shard(Region& region, uint32_t shard, const Clock& clock, const ShardOptions& options);
  bool MakeFirstBuckets();

  BucketChain ChainAt(BucketIndex bucket) const {
    return BucketChain(region_, shard_, bucket, table_.PlaceOf(bucket));
  }
  BucketChain ChainOf(uint64_t hash) const { return ChainAt(table_.BucketOfHash(hash)); }
  std::optional<SlotPlace> FindPlace(const BucketChain& chain, std::string_view key,
                                     uint64_t hash) const;

  // The bucket's local space as its slots, its guests and the items that are held leave it.
  LocalSpace LocalSpaceOf(const BucketChain& chain) const;
  bool LiesIn(const BucketChain& chain, Slot slot) const;
  std::optional<RegionOffset> AllocateItem(const BucketChain& chain, uint64_t occupied_bytes);
  // The index no longer names the item: its memory is free, at once or when nobody holds it any
  // more.
  void FreeItem(Slot slot);
  void FreeMemory(Slot slot);

  // Finds the key's item; one whose time has come is taken away and not found.
  Target Locate(std::string_view key, uint64_t hash);
  bool HasLapsed(uint64_t expiry_unix_us) const {
    return expiry_unix_us != 0 && expiry_unix_us <= now_unix_us_;
  }
  // Nothing is taken away on the word of a damaged item.
  bool ItemHasLapsed(Slot slot) const {
    return items_.HasLapsed(slot, now_unix_us_) &&
           items_.IsWhole(LocationOf(slot), ItemBytesOf(slot));
  }
  // Whether the condition holds: kOk, or the answer to the write.
  std::optional<RegionOffset> RoomBeside(const Target& target, uint64_t bytes,
                                         const StoreOptions& options);
  StoreResult Judge(const StoreOptions& options, const Target& target) const;

  // Makes `content` the key's item, in place or out of place. `content` does not lie in the item
  // that is there, or else only in parts (shard_modify.cc).
  StoreResult Store(Target& target, uint64_t hash, const ItemContent& content);
  StoreResult StoreElsewhere(Target& target, uint64_t hash, const ItemContent& content);
  // The rest of it, with memory at `at`; and where there was none without making room.
  StoreResult StoreAt(Target& target, uint64_t hash, const ItemContent& content, RegionOffset at,
                      std::optional<RegionOffset> spare);
  StoreResult StoreMakingRoom(Target& target, uint64_t hash, ItemContent content,
                              std::optional<RegionOffset> spare);
  bool MayOverwriteInPlace(const Target& target, const ItemShape& shape) const;
  StoreResult OverwriteInPlace(const Target& target, const ItemContent& content);
  // What is written has lapsed already: the key has no item then.
  StoreResult StoreLapsed(Target& target, uint64_t expiry_unix_us);
  // Takes the item away, and the bucket's small items home if `bring_home`.
  void Erase(BucketChain& chain, SlotPlace place, bool bring_home);

  // Expiry (shard_expiry.cc).
  void EraseLapsed(BucketChain& chain, SlotPlace place, bool bring_home);
  // Before anything is changed by a write of an item with that expiry; throws std::bad_alloc.
  void ReserveExpiry(uint64_t expiry_unix_us) {
    if (expiry_unix_us != 0) expiry_.Reserve(table_.count());
  }
  void NoteExpiry(const BucketChain& chain, uint64_t expiry_unix_us);
  bool SweepStep();
  void SweepBucket(BucketChain chain);

  uint32_t FlushBucket(BucketChain chain, std::string_view prefix);
  // Memory for the overflow header that Publish of a new key would need. False: there is none.
  bool TakeSpare(Target& target, std::optional<RegionOffset>& spare);
  // Makes the WRITING item at `slot` the current one of its key.
  void Publish(Target& target, Slot slot, std::optional<RegionOffset> spare);
  StoreResult NoSpace();
  // Of an item that a write builds on: whether it is whole. False is counted.
  bool MayBuildOn(Slot slot);
  uint64_t NextVersion();

  // Accounting of an item that enters or leaves the index. One that is damaged by then is counted
  // as its slot says; nothing is counted below zero on its word.
  void CountIn(const BucketChain& chain, Slot slot);
  void CountOut(const BucketChain& chain, Slot slot);

  // Eviction (shard_evict.cc). The key's item at `slot` was used.
  void Use(const BucketChain& chain, Slot slot) {
    if (evicts_) NoteUse(chain, slot);
  }
  void NoteUse(const BucketChain& chain, Slot slot);
  uint32_t CellOf(const BucketChain& chain, SlotPlace place) const {
    return place.header == chain.place() ? place.index : AccessStamps::kChainCell;
  }
  bool MayEvict(Slot slot) const;
  void Evict(BucketChain chain, SlotPlace place);
  // Memory for an item of that hash, or (none) of the heap. Where there is none, the index gives
  // back what it has too much of; then, if the shard evicts, other items go. Any item of a bucket
  // may have changed its place afterwards, and its bucket: rearranged_ tells.
  using Hash = std::optional<uint64_t>;
  std::optional<RegionOffset> AllocateMakingRoom(Hash hash, uint64_t bytes);
  std::optional<RegionOffset> AllocateInNeed(Hash hash, uint64_t bytes);
  uint64_t RoomMax() const;
  uint64_t EvictFor(Hash hash, uint64_t bytes);
  struct Victim;
  std::optional<Victim> FindVictim(uint64_t bytes);
  uint64_t EvictVictim(const Victim& victim);
  // Whether room should be made in the index instead of where something of that age is; `local_age`
  // is as SampleItems says.
  bool BucketsAreOlder(uint32_t local_age, double age, uint64_t bytes) const;
  uint64_t EvictObjects(const std::vector<RegionOffset>& objects);
  bool MakeRoomForSegment();
  // Meets some items: those of the heap become candidates. The age that a quarter of those in
  // buckets exceeds; 0 if none was met.
  uint32_t SampleItems();
  bool OfferSomeObject();
  std::optional<EvictionCandidate> CandidateAt(RegionOffset object) const;
  std::optional<EvictionCandidate> SampleWouldDo(uint64_t bytes);
  // Whether the index is for the sake of items in buckets; whether it is large as well.
  bool BucketsAreFull() const;
  bool BucketsHoldMuch() const;
  std::optional<SlotPlace> PlaceOfCandidate(const EvictionCandidate& candidate) const;
  std::optional<size_t> OldestCandidate(uint64_t bytes, bool must_do);
  std::optional<SlotPlace> OldestLocal(const BucketChain& chain) const;
  // Finds the target again after evictions and merges, with a spare header exactly if Publish needs
  // one. False: there is no memory for it.
  bool LocateAgain(Target& target, std::string_view key, uint64_t hash,
                   std::optional<RegionOffset>& spare);

  // What one write may do to find out what has to go for room of so many bytes.
  void GrantSearch(uint64_t bytes);

  // Evicting what lies in a run of pages (shard_evict_run.cc).
  struct PageRun {
    uint64_t begin = 0;
    uint64_t bytes = 0;
    double heat = 0;  // the sum of each item's bytes by its age
    std::vector<RegionOffset> objects;

    double age() const { return heat == 0 ? HUGE_VAL : static_cast<double>(bytes) / heat; }
    void Add(const PageRun& neighbour);
  };
  // What should go for the sake of a write: one item, or all in a run.
  struct Victim {
    double age = 0;
    EvictionCandidate candidate;
    std::optional<PageRun> run;
  };
  enum class Side : uint8_t { kBefore, kFrom };
  bool IsEvictableItem(RegionOffset object) const;
  // Where the index names the item at `object`; no place: nowhere.
  Target TargetAt(RegionOffset object) const;
  std::optional<PageRun> RunAt(RegionOffset at, Side side);
  std::optional<PageRun> RunAround(RegionOffset at, uint64_t bytes);
  // Of the runs around candidates that are as long as an allocation of `bytes` needs. nullopt: none
  // can be cleared, or was found in what may be looked at. Forgets candidates around which none
  // can, unless their own memory will do: the oldest of all would keep others out of the pool for
  // ever.
  std::optional<PageRun> OldestRun(uint64_t bytes);
  uint64_t ClearableFrom(RegionOffset at, std::vector<RegionOffset>& objects) const;
  double HeatOf(const BucketChain& chain, SlotPlace place) const;
  std::optional<BucketChain> ClearableChainWith(RegionOffset object) const;
  void EvictHeader(RegionOffset object);
  std::optional<PageRun> SegmentAround(RegionOffset at);
  uint64_t EvictAnyRun(uint64_t bytes);

  // Room for what is longer than a segment (shard_evict_window.cc): a run of free pages. False:
  // none can be had, and nothing was evicted; unless the index could not be squeezed after all.
  struct Survey;
  bool ClearWindow(uint64_t bytes);
  void SurveyMemory(RegionOffset begin, RegionOffset end, Survey& survey);
  MemoryPiece PieceOfHeap(Heap::Extent span);
  std::optional<uint32_t> AgeOfObject(RegionOffset object) const;
  bool ListObjects(const Window& window, Survey& survey, std::vector<RegionOffset>& objects);
  bool MoveSegmentsOut(RegionOffset begin, RegionOffset end);
  void TermsOfSqueezing(WindowTerms& terms);
  double HeatOfMerge(const BucketChain& parent, const BucketChain& child) const;

  // A segment of the index goes elsewhere (shard_move.cc): to free pages, that are its from now on.
  bool MayMoveSegment(uint32_t number) const;
  void MoveSegment(uint32_t number, RegionOffset to);
  void CopyBucket(BucketChain from, BucketChain to);
  void LeaveBucket(BucketChain from, const BucketChain& to);

  // Lending (shard_lend.cc): so much of another bucket's local space, where the heap has nothing.
  // Not of `except`'s, of which more may be taken than its slots say.
  std::optional<RegionOffset> Borrow(uint64_t bytes, Guests::Owner owner,
                                     std::optional<BucketIndex> except);
  std::optional<RegionOffset> BorrowHeader(const BucketChain& chain) {
    return Borrow(kBucketHeaderBytes, {.header_of = chain.bucket(), .hash = 0}, chain.bucket());
  }
  std::optional<RegionOffset> BorrowFrom(BucketIndex lender, uint64_t bytes, Guests::Owner owner);
  // That bucket may have something to lend.
  void NoteLender(BucketIndex bucket) { lenders_[next_lender_++ % lenders_.size()] = bucket; }
  // What lies there is gone: true if it was a guest.
  bool EndLoan(RegionOffset at);
  // The guest goes home or into the heap or, if it is an item and `lender` has it so far, to
  // another one. False: there is no room for it.
  bool MoveGuest(const Guests::Guest& guest, std::optional<BucketIndex> lender);
  bool MoveGuestItem(const Guests::Guest& guest, std::optional<BucketIndex> lender);
  bool MoveChainToHeap(BucketChain chain);
  // So much of the bucket's local space that has no room, in the place of a guest, who goes
  // elsewhere.
  std::optional<RegionOffset> Reclaim(const BucketChain& chain, uint64_t bytes);
  // All guests of the bucket go. False: not all, as there is no memory for them.
  bool SendGuestsAway(const BucketChain& lender);
  // A few go, if memory is not short any more. True: there is more to do.
  bool SendGuestsHome();

  // Contraction (shard_contraction.cc).
  struct Merge;
  bool MayMerge(uint64_t percent) const;
  bool IsSparse() const;
  bool ContractStep();
  // Where an allocation has failed: merges, if the load allows it, until a segment is given back.
  // False: none was.
  bool ContractInNeed();
  // The last bucket goes into the one that it was split off. False: there is no memory for items
  // and headers that find no place there; with `squeeze` none of the heap is taken for items.
  bool MergeLast(bool squeeze);
  bool PlanMerge(const BucketChain& parent, const BucketChain& child, bool squeeze, Merge& merge);
  void ApplyMerge(BucketChain& parent, BucketChain& child, Merge& merge);
  // Evicts the oldest items of both buckets until the rest fits into one. How many went; nullopt:
  // too much has to stay.
  std::optional<uint64_t> ThinForMerge(const BucketChain& parent, const BucketChain& child);
  // Frees a segment of the index, whatever it costs: how many items were evicted and buckets
  // merged.
  uint64_t SqueezeIndex();
  bool GiveBackSegments();

  // Growth (shard_growth.cc).
  struct Split;
  // Whether so many buckets would have more than that part of the load at which one more is wanted.
  bool LoadIsAbove(uint64_t percent, uint64_t buckets) const;
  bool WantsSplit() const;
  bool OverdueForSplit() const;
  bool CrampedForSplit() const;
  bool GrowthPaused();
  bool TakeNotes(uint32_t buckets);
  bool SplitNext();
  bool TakeOverflow(size_t count, std::vector<RegionOffset>& overflow);
  // Of the item's key; nullopt: it is damaged, and nobody knows.
  std::optional<uint64_t> HashOfItem(Slot slot) const;
  Split PlanSplit(const BucketChain& parent, uint32_t new_depth) const;
  void SetStamps(const BucketChain& chain, const std::vector<AccessStamps::Stamp>& stamps);
  bool PlaceInChild(const BucketChain& parent, const BucketChain& child, Split& split);
  void FreeOverflow(RegionOffset header);
  // Moves small items of the bucket from the heap into its local space, as far as there is room.
  void BringHome(BucketChain chain);
  // An item of the bucket that goes elsewhere, as it is.
  struct Move {
    SlotPlace place;
    Slot from;
    Slot to;
  };
  void Apply(BucketChain& chain, const Move& move);

  Region& region_;
  const uint32_t shard_;
  const Clock& clock_;
  int64_t evicting_ns_ = 0;
  const bool evicts_;
  const uint64_t local_bytes_;  // of one bucket
  const uint64_t local_item_bytes_max_;
  ItemWriter items_;
  BucketTable table_;
  Heap heap_;
  HeldItems held_;
  Guests guests_;
  uint32_t lend_pause_ = 0;               // so many times nobody looks for one at random
  uint64_t too_many_bytes_ = 0;           // to be lent so many
  std::array<BucketIndex, 8> lenders_{};  // where room became free of late
  uint32_t next_lender_ = 0;
  RegionOffset next_to_go_home_{0};
  ExpiryHints expiry_;
  AccessStamps stamps_;  // empty unless the shard evicts, as the next three
  EvictionPool pool_;
  Slot pinned_ = kEmptySlot;  // of the item that is being replaced
  Random random_;
  std::map<uint64_t, uint64_t>
      reserved_;  // location -> bytes of reservations that are neither committed nor aborted
  uint64_t last_version_ = 0;
  uint64_t now_unix_us_ = 0;                  // the clock when it was last looked at
  uint64_t clock_version_ = 0;                // the same as the least next version
  uint64_t next_sweep_unix_us_ = UINT64_MAX;  // not before
  uint64_t last_look_unix_us_ = 0;            // at all of expiry_, with nothing found
  uint32_t growth_pause_ = 0;       // writes until growth is tried again after it found no room
  uint32_t contraction_pause_ = 0;  // the same of contraction
  uint64_t rearranged_ = 0;         // evictions, merges and moves of segments
  uint64_t items_to_look_at_ = 0;   // at most, in runs of pages, by the write at hand
  uint64_t pages_to_search_ = 0;    // and for any run that can be cleared
  // Besides items that lapse. False: nothing has changed since Work found nothing to do.
  bool may_have_work_ = true;

  Counter item_count_, user_bytes_, local_items_, expiring_items_, overflow_headers_;
  Counter borrowed_places_;
  Counter wanted_local_bytes_;  // of items small enough to lie in their bucket, wherever they lie
  Counter puts_, deletes_, overwrites_in_place_, overwrites_moved_, splits_, merges_, no_space_;
  Counter damaged_items_met_;
  Counter index_bytes_given_back_;
  Counter expired_items_, expired_bytes_, evicted_items_, evicted_bytes_, items_looked_at_;
  Counter segments_moved_;
};

}  // namespace kvd
