// A second, simple reader of the region: superblock, count, directory, bucket, item, by bytes
// alone. It shares with kvd the layout's structs and JudgeItem and nothing else, so it proves that
// what the store writes is what the layout says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/layout/bucket.h"
#include "common/layout/superblock.h"
#include "common/protocol/judge_item.h"

namespace kvd::test {

class ReferenceReader {
 public:
  enum class Outcome { kFound, kNotFound, kRetry };

  // `base` is any mapping of the region; its superblock must verify (aborts otherwise).
  explicit ReferenceReader(const std::byte* base);

  // One attempt. kRetry: what was read did not fit together, because the region was being written.
  Outcome TryGet(std::string_view key, std::string& value, uint64_t* version = nullptr);

  // Until it is found or proved missing; nullopt: missing. Gives up, with an abort, after very many
  // attempts.
  std::optional<std::string> Get(std::string_view key);

  // The same, but reads the item first where it was when this reader last saw it.
  std::optional<std::string> GetRemembered(std::string_view key);

  uint64_t remembered_hits() const { return remembered_hits_; }
  uint64_t retries() const { return retries_; }

 private:
  std::optional<RegionOffset> PlaceOf(uint32_t shard, uint32_t bucket) const;
  ItemVerdict ReadItem(Slot slot, std::string_view key, ItemView& item);
  bool ReadHeader(RegionOffset at, uint64_t seed, BucketHeader& header) const;

  const std::byte* base_;
  RegionIdentity identity_{};
  std::vector<std::byte> buffer_;
  std::unordered_map<std::string, Slot> remembered_;
  Slot found_slot_ = kEmptySlot;
  uint64_t retries_ = 0;
  uint64_t remembered_hits_ = 0;
};

}  // namespace kvd::test
