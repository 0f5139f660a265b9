#include "client/internal/location_cache.h"

#include <bit>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace kvd {

// Of fresh memory, whose pages are zero: an entry of zeroes remembers nothing. They are not touched
// before they are needed.
LocationCache::LocationCache(MappedMemory memory, uint64_t entries)
    : memory_(std::move(memory)),
      entries_(reinterpret_cast<LocationEntry*>(memory_.base())),
      mask_(entries - 1) {}

void LocationCache::Set(uint64_t hash, Slot slot) {
  LocationEntry& entry = entries_[hash & mask_];
  // Who forgets a key does not take the place from another one.
  if (slot != kEmptySlot || entry.Find(hash) != kEmptySlot) entry.Set(hash, slot);
}

absl::StatusOr<std::shared_ptr<LocationCache>> LocationCache::Create(uint64_t entries) {
  if (entries > kEntriesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(entries, " locations to remember; at most ", kEntriesMax));
  }
  MappedMemory memory;
  if (entries != 0) {
    entries = std::bit_ceil(entries);
    KVD_ASSIGN_OR_RETURN(memory, MappedMemory::Map({.length_bytes = entries * sizeof(LocationEntry),
                                                    .protection = PROT_READ | PROT_WRITE,
                                                    .flags = MAP_PRIVATE}));
  }
  return std::shared_ptr<LocationCache>(new LocationCache(std::move(memory), entries));
}

}  // namespace kvd
