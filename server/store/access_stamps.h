// When the items of each bucket were last used, as far as the server knows: one stamp for each slot
// of the bucket's own header and one for all items of its chain, in private memory.
//
// A stamp counts uses of the shard's items, in units of 16; ages are right up to 2^36 uses.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/layout/bucket.h"

namespace kvd {

class AccessStamps {
 public:
  using Stamp = uint32_t;
  static constexpr uint32_t kChainCell = kSlotsPerHeader;  // shared by the items of the chain

  // Makes room for that many buckets. Throws std::bad_alloc; nothing has changed then.
  void Reserve(uint32_t buckets) {
    while (chunks_.size() * kChunk < buckets) chunks_.push_back(std::make_unique<Chunk>());
  }

  void Use(uint32_t bucket, uint32_t cell) {
    ++uses_;
    At(bucket)[cell] = Now();
  }
  Stamp Get(uint32_t bucket, uint32_t cell) const { return At(bucket)[cell]; }
  void Set(uint32_t bucket, uint32_t cell, Stamp stamp) { At(bucket)[cell] = stamp; }

  // How long ago that was, in stamps.
  uint32_t AgeOf(Stamp stamp) const { return Now() - stamp; }

 private:
  static constexpr uint32_t kChunk = 1024;  // buckets
  static constexpr uint32_t kUsesPerStampBits = 4;
  using Cells = std::array<Stamp, kSlotsPerHeader + 1>;
  using Chunk = std::array<Cells, kChunk>;

  Stamp Now() const { return static_cast<Stamp>(uses_ >> kUsesPerStampBits); }
  Cells& At(uint32_t bucket) { return (*chunks_[bucket / kChunk])[bucket % kChunk]; }
  const Cells& At(uint32_t bucket) const { return (*chunks_[bucket / kChunk])[bucket % kChunk]; }

  std::vector<std::unique_ptr<Chunk>> chunks_;
  uint64_t uses_ = 0;
};

}  // namespace kvd
