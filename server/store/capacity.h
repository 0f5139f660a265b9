// How much memory a number of items needs: a calculation from the sizes by which the store itself
// works (index_load.h, size_classes.h, local_space.h, common/layout), without a region.
//
// Index: as many buckets as the load asks for, in whole segments. Heap: what is too long for a
// bucket, by size classes and spans, and what finds no room in its own, which is drawn by lot (with
// a fixed seed) for a few thousand buckets of either kind that linear hashing has: those that are
// split already and those that are not.
#pragma once

#include <cstdint>
#include <vector>

#include "common/layout/units.h"

namespace kvd {

// Items of one size.
struct ItemKind {
  uint64_t key_bytes = 0;    // 1 to kKeyBytesMax
  uint64_t value_bytes = 0;  // below 2^40
  bool expires = false;
  double share = 1;  // of all items, in any unit
};

struct CapacityNeeds {
  uint64_t items = 0;           // up to 2^40
  std::vector<ItemKind> kinds;  // at least one
  uint32_t pollers = 1;
  uint32_t bucket_bytes = kBucketBytesDefault;
};

struct Capacity {
  uint64_t memory_bytes = 0;  // for --memory: whole pages of 2 MiB, what follows and a margin
  uint64_t index_bytes = 0;
  uint64_t heap_bytes = 0;
  double user_bytes = 0;     // keys and values
  double local_share = 0;    // of the items, that lie in their bucket
  double reads_per_get = 0;  // over RDMA, of a client that does not remember where items lie
  uint64_t largest_value_bytes = 0;
};

// What kvd's --memory has to be so that it holds these items and refuses none: if they stay as long
// as they are, with a margin for values that are rewritten. Takes some milliseconds.
Capacity PlanCapacity(const CapacityNeeds& needs);

}  // namespace kvd
