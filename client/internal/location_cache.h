// Remembers where items lie, so that a GET is one exact read. Hints only: whatever is read there is
// judged like anything else.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/mapped_memory.h"
#include "common/layout/slot.h"

namespace kvd {

// The slot of one hash, for any number of threads that look and write without waiting for each
// other. The first word is hash XOR slot, so two words that were written by different threads, or
// for different keys, give back neither of the hashes: such an entry is one that remembers nothing.
// Source: Hyatt and Mann, "A lockless transposition-table implementation for parallel search",
// ICGA Journal 25(1), 2002.
//
// Relaxed loads and stores without a partner: nothing is published by an entry, since the memory
// that a slot names is judged for itself.
struct LocationEntry {
  Slot Find(uint64_t hash) const {
    const Slot found = slot.load(std::memory_order_relaxed);
    return (hash_xor_slot.load(std::memory_order_relaxed) ^ found) == hash ? found : kEmptySlot;
  }

  void Set(uint64_t hash, Slot now) {
    // Other processors may have the line: it stays theirs if it says so already.
    if (Find(hash) == now) return;
    hash_xor_slot.store(hash ^ now, std::memory_order_relaxed);
    slot.store(now, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> hash_xor_slot{0};
  std::atomic<Slot> slot{kEmptySlot};
};
static_assert(sizeof(LocationEntry) == 16);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Direct-mapped: an entry is replaced by whatever comes to the same place, so a lookup is one cache
// line and memory is bounded. One client's, or shared by clients of many threads: every method may
// be called by any of them at any time.
//
// Entries are never cleared. A hash is seeded with the incarnation of the region that the key is
// in, so what is remembered of another kvd, or of one that is gone, is not found. But hashes may be
// equal by chance, and a reply may be taken when its session has been replaced by one with a new
// kvd. So whoever reads at a slot sees to it that it lies in his region: RegionMap::Plausible,
// WindowGet and ClientChannel::PostReads do.
class LocationCache {
 public:
  static constexpr uint64_t kEntriesMax = uint64_t{1} << 30;

  // Rounds up to a power of two; 0: remembers nothing. InvalidArgument: more than kEntriesMax.
  // ResourceExhausted.
  static absl::StatusOr<std::shared_ptr<LocationCache>> Create(uint64_t entries);

  // The slot remembered for the hash, or kEmptySlot.
  Slot Find(uint64_t hash) const {
    return entries_ == nullptr ? kEmptySlot : entries_[hash & mask_].Find(hash);
  }

  // An empty slot: there is no item any more.
  void Remember(uint64_t hash, Slot slot) {
    if (entries_ != nullptr) Set(hash, slot);
  }

  void Forget(uint64_t hash) { Remember(hash, kEmptySlot); }

 private:
  LocationCache(MappedMemory memory, uint64_t entries);

  // Not inline, so that what finds an item remains small enough to be.
  void Set(uint64_t hash, Slot slot);

  const MappedMemory memory_;
  LocationEntry* const entries_;  // null: none
  const uint64_t mask_;
};

}  // namespace kvd
