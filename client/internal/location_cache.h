// Remembers where items lie, so that a GET is one exact read. Hints only: whatever is read there is judged like anything
// else.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "common/layout/slot.h"

namespace kvd {

// Direct-mapped: an entry is replaced by whatever comes to the same place, so a lookup is one cache line and memory is
// bounded. One thread at a time.
class LocationCache {
 public:
  // 0: remembers nothing.
  explicit LocationCache(uint32_t entries) : entries_(entries == 0 ? 0 : std::bit_ceil(entries)) {}

  // The slot remembered for the hash, or kEmptySlot.
  Slot Find(uint64_t hash) const {
    if (entries_.empty()) return kEmptySlot;
    const Entry& entry = entries_[Index(hash)];
    return entry.hash == hash ? entry.slot : kEmptySlot;
  }

  void Remember(uint64_t hash, Slot slot) {
    if (!entries_.empty()) entries_[Index(hash)] = {hash, slot};
  }

  void Forget(uint64_t hash) { Remember(hash, kEmptySlot); }

 private:
  struct Entry {
    uint64_t hash = 0;
    Slot slot = kEmptySlot;
  };
  static_assert(sizeof(Entry) == 16);

  size_t Index(uint64_t hash) const { return static_cast<size_t>(hash) & (entries_.size() - 1); }

  std::vector<Entry> entries_;
};

}  // namespace kvd
