// Deleting everything that begins with a prefix, a stretch of buckets at a time.
#include <optional>

#include "server/store/shard.h"

namespace kvd {
namespace {

constexpr uint32_t kFlushedBucketsMax = 256;
constexpr uint32_t kFlushedItemsMax = 512;

}  // namespace

// A split moves items into the last bucket, which is still to come: so each item that is there from
// the first stretch to the last is met.
Shard::Flushed Shard::Flush(std::string_view prefix, uint32_t bucket) {
  Flushed flushed;
  const uint32_t end = bucket + std::min(kFlushedBucketsMax, table_.count() - bucket);
  for (; bucket < end && flushed.items < kFlushedItemsMax; ++bucket) {
    flushed.items += FlushBucket(ChainAt(BucketIndex{bucket}), prefix);
  }
  flushed.next_bucket = bucket == table_.count() ? 0 : bucket;
  return flushed;
}

uint32_t Shard::FlushBucket(BucketChain chain, std::string_view prefix) {
  uint32_t items = 0;
  bool local = false;
  for (;;) {
    std::optional<SlotPlace> found;
    chain.AnyOf([&](SlotPlace place, Slot slot) {
      if (!items_.KeyAt(LocationOf(slot)).starts_with(prefix)) return false;
      found = place;
      local = local || LiesIn(chain, slot);
      return true;
    });
    if (!found) break;
    Erase(chain, *found, /*bring_home=*/false);
    deletes_.Add(1);
    ++items;
  }
  if (local) BringHome(chain);
  return items;
}

}  // namespace kvd
