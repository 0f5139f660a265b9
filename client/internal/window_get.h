// The first attempt of a GET where the region is mapped: tag, slot, item, verdict, with as few instructions and stores as
// it takes, so that the processor overlaps independent GETs. It only ever says "found", in the words of JudgeItem like
// everybody else; whatever else it meets is left to GetMachine, which begins anew.
//
// A GetMachine alone would do. But it keeps a copy of the header and its own state in memory, which costs a
// dependent GET little and an independent one the overlap with its neighbours (docs/benchmarks.md has the figures).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "client/internal/region_map.h"
#include "common/layout/slot.h"
#include "common/layout/superblock.h"
#include "common/protocol/judge_item.h"
#include "common/protocol/racy_copy.h"

namespace kvd {

class WindowGet {
 public:
  // Items up to this size are tried: those whose size a slot says exactly.
  static constexpr uint64_t kItemBytesMax = 2040;

  // `window`: the mapped region, or null (then nothing is ever found). `ended`: ClientChannel::ended. Both and `map`
  // outlive the object.
  WindowGet(const std::byte* window, const uint32_t* ended, const RegionMap& map);

  // True: `item` holds the key's current value, pointing into this object's buffer (valid until the next call), and `slot`
  // says where it lies. False says nothing. The caller still has to look at the lifeline. Never blocks.
  bool Find(std::string_view key, uint64_t hash, ItemView& item, Slot& slot) { return find_(*this, key, hash, item, slot); }

  // The same for an item whose slot is known.
  bool FindAt(std::string_view key, Slot slot, ItemView& item) { return find_at_(*this, key, slot, item); }

  // Brings what a Find of this hash will look at first into the cache.
  void Prefetch(uint64_t hash) const;

  // True if the server that owns the region lived, and the session, after everything that this thread has loaded so far.
  bool ServerAlive() const {
    // The partner is the kernel, which marks the lifeline before it releases what lets the next kvd start.
    LoadFence();
    return LifelineAlive(__atomic_load_n(lifeline_, __ATOMIC_RELAXED)) && __atomic_load_n(ended_, __ATOMIC_RELAXED) == 0;
  }

 private:
  friend struct WindowGetSteps;
  using FindFunction = bool (*)(WindowGet&, std::string_view, uint64_t, ItemView&, Slot&);
  using FindAtFunction = bool (*)(WindowGet&, std::string_view, Slot, ItemView&);

  const std::byte* const window_;
  const uint32_t* const lifeline_;
  const uint32_t* const ended_;
  const RegionMap& map_;
  FindFunction find_;
  FindAtFunction find_at_;
  alignas(kCacheLineBytes) std::byte buffer_[kItemBytesMax + 8];
};

}  // namespace kvd
