// A shard of the store: its part of the index and its heap. One writer: the poller that owns it.
// Readers are processes and NICs that see only the region and verify what they read; nothing here
// waits for them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/layout/slot.h"
#include "common/protocol/judge_item.h"
#include "server/store/bucket_chain.h"
#include "server/store/bucket_table.h"
#include "server/store/counter.h"
#include "server/store/heap.h"
#include "server/store/held_items.h"
#include "server/store/item_writer.h"
#include "server/store/local_space.h"
#include "server/store/region.h"

namespace kvd {

enum class StoreStatus : uint8_t {
  kOk,
  kNotFound,
  kNoSpace,  // the region is full; nothing was changed
};

// Where and what was written: what a reply carries.
struct WriteResult {
  StoreStatus status = StoreStatus::kOk;
  uint64_t version = 0;  // of the write; a DELETE has one too
  Slot slot = kEmptySlot;
};

// Counters for the statistics; written by the owner, read by anybody (relaxed atomics inside).
struct ShardStats {
  uint64_t items = 0;
  uint64_t user_bytes = 0;   // keys and values of live items
  uint64_t local_items = 0;  // items that lie in their bucket: one READ
  uint64_t buckets = 0;
  uint64_t overflow_headers = 0;
  uint64_t index_bytes = 0;      // segments of buckets
  uint64_t heap_bytes = 0;       // pages the heap holds
  uint64_t heap_used_bytes = 0;  // of these, in items and overflow headers
  uint64_t puts = 0, deletes = 0, overwrites_in_place = 0, overwrites_moved = 0, splits = 0,
           no_space = 0;
};

// READs that cold GETs of all items would take, each item once.
struct ReadCost {
  uint64_t items = 0;
  uint64_t reads = 0;
};

// An item's memory that is being filled (a PUT whose value is pulled from the peer). Move-only
// token; give it to Commit or Abort exactly once.
struct Reservation {
  std::string_view key;        // as stored in the region
  std::byte* value = nullptr;  // value_len bytes to fill
  uint64_t value_len = 0;
  uint64_t hash = 0;
  Slot slot = kEmptySlot;
};

class Shard {
 public:
  // The shard's first buckets and segment are made here: ResourceExhausted if there is no room even
  // for that. The region and the clock outlive the shard; the shard's memory is not given back to
  // the region.
  static absl::StatusOr<std::unique_ptr<Shard>> Create(Region& region, uint32_t shard,
                                                       const Clock& clock);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // All take 1 <= key.size() <= kKeyBytesMax and hash == HashKey(key, geometry.hash_seed()); the
  // caller has checked that and the value's limit. Key and value do not lie in the region. On
  // kNoSpace nothing has changed.
  WriteResult Put(std::string_view key, uint64_t hash, std::string_view value);
  WriteResult Delete(std::string_view key, uint64_t hash);

  // True and `item` with views into the region (valid until the next call of this shard that
  // writes), or false.
  bool Find(std::string_view key, uint64_t hash, ItemView& item, Slot& slot) const;

  // A PUT in two halves. Until Commit no reader sees anything; other writes of the same key may
  // come between. kNoSpace from Commit: the index had no room for the key; the reservation is gone
  // and nothing else has changed.
  StoreStatus Reserve(std::string_view key, uint64_t hash, uint64_t value_len,
                      Reservation& reservation);
  WriteResult Commit(const Reservation& reservation);
  void Abort(const Reservation& reservation);

  // Keeps the memory of the item at `slot` (as Find returned it) from being reused until Release,
  // also if it is overwritten or deleted meanwhile: for a reader that could not get hold of a key
  // under constant overwriting. Holds count: as many Releases are needed. Release of what is not
  // held does nothing.
  void Hold(Slot slot);
  void Release(Slot slot);

  // One step of deferred work (a bucket split, if the load asks for one). True if there is more to
  // do. Without calls of it the writes do such steps themselves, a little later.
  bool Work();

  // To be called once per batch of requests, so that versions follow the clock without a system
  // call per write.
  void RefreshClock();

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

  Shard(Region& region, uint32_t shard, const Clock& clock);
  bool MakeFirstBuckets();

  BucketChain ChainAt(BucketIndex bucket) const {
    return BucketChain(region_, shard_, bucket, table_.PlaceOf(bucket));
  }
  BucketChain ChainOf(uint64_t hash) const { return ChainAt(table_.BucketOfHash(hash)); }
  std::optional<SlotPlace> FindPlace(const BucketChain& chain, std::string_view key,
                                     uint64_t hash) const;

  // The bucket's local space as its slots and the items that are held leave it.
  LocalSpace LocalSpaceOf(const BucketChain& chain) const;
  bool LiesIn(const BucketChain& chain, Slot slot) const;
  std::optional<RegionOffset> AllocateItem(const BucketChain& chain, uint64_t occupied_bytes);
  // The index no longer names the item: its memory is free, at once or when nobody holds it any
  // more.
  void FreeItem(Slot slot);
  void FreeMemory(Slot slot);

  bool MayOverwriteInPlace(const Target& target, uint64_t occupied_bytes) const;
  WriteResult OverwriteInPlace(const Target& target, std::string_view value);
  // Memory for the overflow header that Publish of a new key would need. False: there is none.
  bool TakeSpare(const Target& target, std::optional<RegionOffset>& spare);
  // Makes the WRITING item at `slot` the current one of its key.
  void Publish(Target& target, Slot slot, std::optional<RegionOffset> spare);
  WriteResult NoSpace();
  uint64_t NextVersion();

  // Accounting of an item that enters or leaves the index.
  void CountIn(const BucketChain& chain, Slot slot);
  void CountOut(const BucketChain& chain, Slot slot);

  // Growth (shard_growth.cc).
  struct Split;
  bool WantsSplit() const;
  bool OverdueForSplit() const;
  bool GrowthPaused();
  bool SplitNext();
  bool TakeOverflow(size_t count, std::vector<RegionOffset>& overflow);
  Split PlanSplit(const BucketChain& parent, uint32_t new_depth) const;
  void CopyToChild(const BucketChain& parent, const BucketChain& child, Split& split) const;
  void FreeOverflow(RegionOffset header);
  // Moves small items of the bucket from the heap into its local space, as far as there is room.
  void BringHome(BucketChain chain);

  Region& region_;
  const uint32_t shard_;
  const Clock& clock_;
  const uint64_t local_bytes_;  // of one bucket
  const uint64_t local_item_bytes_max_;
  ItemWriter items_;
  BucketTable table_;
  Heap heap_;
  HeldItems held_;
  std::map<uint64_t, uint64_t>
      reserved_;  // location -> bytes of reservations that are neither committed nor aborted
  uint64_t last_version_ = 0;
  uint64_t clock_version_ = 0;  // the clock as the least next version
  uint32_t growth_pause_ = 0;   // writes until growth is tried again after it found no room

  Counter item_count_, user_bytes_, local_items_, overflow_headers_;
  Counter wanted_local_bytes_;  // of items small enough to lie in their bucket, wherever they lie
  Counter puts_, deletes_, overwrites_in_place_, overwrites_moved_, splits_, no_space_;
};

}  // namespace kvd
