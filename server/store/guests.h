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
  struct Guest {
    RegionOffset at{};
    uint32_t bytes = 0;
    // An overflow header: of which bucket. None: an item, whose key says where it belongs.
    std::optional<BucketIndex> header_of;
  };

  bool empty() const { return guests_.empty(); }
  uint64_t count() const { return guests_.size(); }
  bool Contains(RegionOffset at) const { return guests_.contains(ToBytes(at)); }

  // Nothing lies there. Throws std::bad_alloc, and has changed nothing then.
  void Add(const Guest& guest) {
    guests_.emplace(ToBytes(guest.at), Entry{guest.bytes, guest.header_of});
  }

  // False: no guest lies there.
  bool Remove(RegionOffset at) { return guests_.erase(ToBytes(at)) != 0; }

  // The first at `from` or behind it.
  std::optional<Guest> NextFrom(RegionOffset from) const {
    const auto found = guests_.lower_bound(ToBytes(from));
    if (found == guests_.end()) return std::nullopt;
    return Guest{RegionOffset{found->first}, found->second.bytes, found->second.header_of};
  }

  // Those at [begin, end), in order of address.
  template <typename Visit>
  void ForEachIn(RegionOffset begin, RegionOffset end, Visit visit) const {
    for (auto it = guests_.lower_bound(ToBytes(begin));
         it != guests_.end() && it->first < ToBytes(end); ++it) {
      visit(Guest{RegionOffset{it->first}, it->second.bytes, it->second.header_of});
    }
  }

 private:
  struct Entry {
    uint32_t bytes = 0;
    std::optional<BucketIndex> header_of;
  };

  absl::btree_map<uint64_t, Entry> guests_;  // by location
};

}  // namespace kvd
