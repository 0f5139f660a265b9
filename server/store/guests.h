// What lies in the local space of another bucket than its own: items, and overflow headers, for
// which the heap had no memory. A bucket's own items are known by its slots; nothing but this says
// that a guest is there.
//
// A shard that evicts makes room by that instead, and has no guests.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"
#include "common/layout/units.h"

namespace kvd {

class Guests {
 public:
  // Whose it is. Nothing of that is read from where the guest lies, as it may be damaged there.
  struct Owner {
    std::optional<BucketIndex> header_of;  // an overflow header: of which bucket
    uint64_t hash;                         // an item: of its key
  };
  struct Guest {
    RegionOffset at{};
    uint32_t bytes = 0;
    BucketIndex lender{};
    Owner owner;
  };

  bool empty() const { return guests_.empty(); }
  uint64_t count() const { return guests_.size(); }
  bool Contains(RegionOffset at) const { return guests_.contains(ToBytes(at)); }

  // Nothing lies there. Throws std::bad_alloc, and has changed nothing then.
  void Add(const Guest& guest) { guests_.emplace(ToBytes(guest.at), guest); }

  // The one that lay there; nullopt: no guest did.
  std::optional<Guest> Remove(RegionOffset at) {
    const auto found = guests_.find(ToBytes(at));
    if (found == guests_.end()) return std::nullopt;
    const Guest guest = found->second;
    guests_.erase(found);
    return guest;
  }
  std::optional<Guest> At(RegionOffset at) const {
    const auto found = guests_.find(ToBytes(at));
    if (found == guests_.end()) return std::nullopt;
    return found->second;
  }

  // The first at `from` or behind it.
  std::optional<Guest> NextFrom(RegionOffset from) const {
    const auto found = guests_.lower_bound(ToBytes(from));
    if (found == guests_.end()) return std::nullopt;
    return found->second;
  }

  // Those at [begin, end), in order of address.
  template <typename Visit>
  void ForEachIn(RegionOffset begin, RegionOffset end, Visit visit) const {
    for (auto it = guests_.lower_bound(ToBytes(begin));
         it != guests_.end() && it->first < ToBytes(end); ++it) {
      visit(it->second);
    }
  }

 private:
  absl::btree_map<uint64_t, Guest> guests_;  // by location
};

}  // namespace kvd
