// Deleting everything that begins with a prefix, a stretch of buckets at a time, in the order in
// which splits and merges carry nothing past the position (WalkOrder).
#include <algorithm>
#include <bit>
#include <optional>

#include "common/protocol/geometry.h"
#include "server/store/shard.h"

namespace kvd {
namespace {

constexpr uint32_t kFlushedBucketsMax = 256;
constexpr uint32_t kFlushedItemsMax = 512;

}  // namespace

Shard::Flushed Shard::Flush(std::string_view prefix, uint32_t position) {
  Flushed flushed;
  uint64_t at = position;
  for (uint32_t i = 0; i < kFlushedBucketsMax && at < kWalkEnd; ++i) {
    const auto order = static_cast<uint32_t>(at);
    const BucketChain chain = ChainOf(HashAtWalkOrder(order));
    flushed.items += FlushBucket(chain, prefix);
    at = WalkEndOf(chain.bucket(), chain.depth());
    if (flushed.items >= kFlushedItemsMax) break;
  }
  flushed.next_position = at == kWalkEnd ? 0 : static_cast<uint32_t>(at);
  return flushed;
}

bool Shard::MayFlushFrom(uint32_t position) const {
  const Geometry& geometry = region_.geometry();
  const uint64_t segments_max = geometry.directory_entries / geometry.shard_count + 1;
  const int depth_max = std::bit_width(segments_max * geometry.buckets_per_segment() - 1);
  return position % (kWalkEnd >> std::min(depth_max, 32)) == 0;
}

uint32_t Shard::FlushBucket(BucketChain chain, std::string_view prefix) {
  uint32_t items = 0;
  bool local = false;
  for (;;) {
    std::optional<SlotPlace> found;
    chain.AnyOf([&](SlotPlace place, Slot slot) {
      if (!items_.KeyOf(slot).starts_with(prefix)) return false;
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
