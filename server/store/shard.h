// A shard of the store: its part of the index and its heap. One writer: the poller that owns it. Readers are processes
// and NICs that see only the region and verify what they read; nothing here waits for them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/layout/slot.h"
#include "common/protocol/judge_item.h"
#include "server/store/region.h"

namespace kvd {

enum class StoreStatus : uint8_t {
  kOk,
  kNotFound,
  kNoSpace,   // the region is full; nothing was changed
};

// Where and what was written: what a reply carries.
struct WriteResult {
  StoreStatus status = StoreStatus::kOk;
  uint64_t version = 0;
  Slot slot = kEmptySlot;
};

// Counters for the statistics; written by the owner, read by anybody (relaxed atomics inside).
struct ShardStats {
  uint64_t items = 0;
  uint64_t user_bytes = 0;         // keys and values of live items
  uint64_t local_items = 0;        // items that lie in their bucket: one READ
  uint64_t buckets = 0;
  uint64_t overflow_headers = 0;
  uint64_t index_bytes = 0;        // segments of buckets
  uint64_t heap_bytes = 0;         // pages the heap holds
  uint64_t heap_used_bytes = 0;    // of these, in items and overflow headers
  uint64_t puts = 0, deletes = 0, overwrites_in_place = 0, overwrites_moved = 0, splits = 0, no_space = 0;
};

// An item's memory that is being filled (a PUT whose value is pulled from the peer). Move-only token; give it to Commit
// or Abort exactly once.
struct Reservation {
  std::string_view key;              // as stored in the region
  std::byte* value = nullptr;        // value_len bytes to fill
  uint64_t value_len = 0;
  uint64_t hash = 0;
  Slot slot = kEmptySlot;
};

class Shard {
 public:
  // The shard's first bucket and segment are made here: ResourceExhausted if there is no room even for that.
  static absl::StatusOr<std::unique_ptr<Shard>> Create(Region& region, uint32_t shard, const Clock& clock);
  ~Shard();

  // All take 1 <= key.size() <= kKeyBytesMax and hash == HashKey(key, geometry.hash_seed()); the caller has checked
  // that and the value's limit. On kNoSpace nothing has changed.
  WriteResult Put(std::string_view key, uint64_t hash, std::string_view value);
  WriteResult Delete(std::string_view key, uint64_t hash);

  // True and `item` with views into the region (valid until the next call of this shard that writes), or false.
  bool Find(std::string_view key, uint64_t hash, ItemView& item, Slot& slot) const;

  // A PUT in two halves. Until Commit no reader sees anything; other writes of the same key may come between.
  StoreStatus Reserve(std::string_view key, uint64_t hash, uint64_t value_len, Reservation& reservation);
  WriteResult Commit(const Reservation& reservation);
  void Abort(const Reservation& reservation);

  // Keeps the memory of the item at `slot` (as Find returned it) from being reused until Release, also if it is
  // overwritten or deleted meanwhile: for a reader that could not get hold of a key under constant overwriting.
  void Hold(Slot slot);
  void Release(Slot slot);

  // One step of deferred work (a bucket split, if the load asks for one). True if there is more to do.
  bool Work();

  // To be called once per batch of requests, so that versions follow the clock without a system call per write.
  void RefreshClock();

  ShardStats stats() const;

  // Walks everything: every item verifies, is found by its key, lies in the right bucket; memory is accounted for byte
  // by byte, nothing overlaps. For tests; Internal names the first thing that is wrong.
  absl::Status CheckInvariants() const;
};

}  // namespace kvd
