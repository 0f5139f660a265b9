// A region for tests of the read path, written by the rules of docs/formats.md but not by the
// store: every item, header and checked word can be put into any state, also into ones that the
// store never leaves behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/layout/bucket.h"
#include "common/layout/item.h"
#include "common/protocol/geometry.h"

namespace kvd::test {

struct TestItem {
  std::string key;
  std::string value;
  ItemState state = ItemState::kLive;
  uint64_t version = 0;      // 0: the next one
  uint8_t flags = 0;         // optional words; their content is derived from the version
  uint64_t extra_bytes = 0;  // occupied beyond what the item needs
};

class TestRegion {
 public:
  static constexpr uint32_t kBucketBytes = 1024;
  static constexpr uint64_t kRegionBytes = uint64_t{8} << 20;

  // One bucket a shard, as a new store has. Segments of shard s are handed out from segment 1 on.
  explicit TestRegion(uint64_t incarnation, uint32_t shard_count = 1);

  const Geometry& geometry() const { return geometry_; }
  std::span<std::byte> bytes() {
    return {reinterpret_cast<std::byte*>(lines_.get()), kRegionBytes};
  }
  std::byte* At(RegionOffset offset) { return bytes().data() + ToBytes(offset); }

  uint64_t Hash(std::string_view key) const { return HashKey(key, geometry_.hash_seed()); }
  uint32_t ShardOfKey(std::string_view key) const {
    return ShardOf(Hash(key), geometry_.shard_count);
  }
  uint32_t bucket_count(uint32_t shard) const { return shards_[shard].bucket_count; }
  // The bucket that the key belongs to now.
  BucketIndex BucketOfKey(std::string_view key) const;

  // A key of this bucket, of a table of `bucket_count` buckets, made of `prefix` and a number. With
  // `tag_of` also one whose slot has that key's tag.
  std::string KeyIn(uint32_t shard, BucketIndex bucket, uint32_t bucket_count,
                    std::string_view prefix, std::string_view tag_of = {});

  // Where a bucket's header lies.
  RegionOffset BucketOffset(uint32_t shard, BucketIndex bucket) const;
  BucketHeader& HeaderAt(RegionOffset offset) {
    return *reinterpret_cast<BucketHeader*>(At(offset));
  }

  // Room for `bytes` in the heap, or in the local space of a bucket.
  RegionOffset HeapRoom(uint64_t bytes);
  RegionOffset LocalRoom(uint32_t shard, BucketIndex bucket, uint64_t bytes);

  // Writes an item to `location` and returns the slot that leads to it.
  Slot WriteItem(RegionOffset location, const TestItem& item);
  std::string_view KeyAt(RegionOffset location);
  void SetState(Slot slot, ItemState state);

  // Puts a slot into the bucket's first free place, chaining an overflow header if there is none.
  void AddSlot(uint32_t shard, BucketIndex bucket, Slot slot);
  // Takes it out; false if it is not there.
  bool RemoveSlot(uint32_t shard, BucketIndex bucket, Slot slot);
  RegionOffset AddOverflow(uint32_t shard, BucketIndex bucket);
  // All slots of a bucket and its chain.
  std::vector<Slot> SlotsOf(uint32_t shard, BucketIndex bucket);

  // Writes a live item into the bucket's local space (`local`) or the heap and its slot into its
  // bucket.
  Slot Put(const TestItem& item, bool local = false);
  // As the store replaces out of place: new WRITING, old DEAD, slot, new LIVE.
  Slot Replace(Slot old, const TestItem& item);
  void Delete(std::string_view key, Slot slot);

  // Splits the shard's next bucket. `publish_count`: the count word says so at once.
  BucketIndex Split(uint32_t shard, bool publish_count = true);
  void PublishCount(uint32_t shard);

  // Merges the shard's last bucket into the one that it was split off.
  void Merge(uint32_t shard);
  // Takes the directory entry of the last segment away, which holds no bucket any more. The memory
  // stays as it is, and is not given out again; where it lies.
  RegionOffset GiveBackSegment(uint32_t shard);

  // Recomputes a header's checksum; `overflow` is 0 for a bucket's own header. With `new_version`
  // also its version.
  void Seal(uint32_t shard, BucketIndex bucket, RegionOffset overflow, bool new_version = true);
  void SetDirectoryEntry(uint64_t index, uint32_t segment);
  void SetLifeline(uint32_t word);

  // Memory that Replace and Delete leave is used again at once by the next item of its size, as in
  // a busy store.
  bool reuse_memory = false;

 private:
  struct ShardState {
    uint32_t bucket_count = 1;
    std::vector<uint64_t> local_used;  // by bucket
  };
  struct Line {
    alignas(64) std::byte bytes[64];
  };

  void Free(Slot slot);
  void MakeBucket(uint32_t shard, BucketIndex bucket, uint32_t depth);

  Geometry geometry_;
  std::unique_ptr<Line[]> lines_;
  std::vector<ShardState> shards_;
  std::vector<uint32_t> segments_;  // by directory index
  uint32_t next_segment_ = 1;
  uint64_t heap_end_ = kRegionBytes;
  uint64_t next_version_ = 1000;
  uint64_t next_key_ = 0;
  std::map<uint64_t, std::vector<RegionOffset>> free_;  // by occupied bytes
};

}  // namespace kvd::test
