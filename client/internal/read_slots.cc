#include "client/internal/read_slots.h"

#include "common/base/status_macros.h"
#include "common/layout/item.h"

namespace kvd {
namespace {

constexpr size_t kSlotsPerBlock = 32;
constexpr uint64_t kScratchBytes = 512;  // directory entries, chained headers, the confirmation of a miss
constexpr uint64_t kItemBytes = 2048;
constexpr uint64_t kLargeFloorBytes = 16384;

}  // namespace

ReadSlot::ReadSlot(ClientChannel& channel, RegionMap& map, bool whole_buckets)
    : machine(map, whole_buckets), large(channel, kLargeFloorBytes) {}

absl::StatusOr<std::byte*> ReadSlot::BufferFor(const GetMachine::Read& read) {
  switch (read.into) {
    case GetMachine::Into::kScratch:
      return small.data();
    case GetMachine::Into::kItem:
      if (place != nullptr) {
        const uint64_t before_value = place->bytes_before_key + key_bytes;
        if (std::byte* const at = place->PlaceFor(before_value, read.length); at != nullptr) return at;
      }
      if (read.length <= kItemBytes) return small.data() + kScratchBytes;
      return large.AtLeast(read.length);
    case GetMachine::Into::kBucket:
      break;
  }
  return small.data() + kScratchBytes + kItemBytes;
}

ReadSlots::~ReadSlots() {
  slots_.clear();
  for (const TransferBuffer& block : blocks_) channel_.Free(block);
}

absl::StatusOr<ReadSlot*> ReadSlots::Take() {
  if (free_.empty()) KVD_RETURN_IF_ERROR(Grow());
  ReadSlot* slot = free_.back();
  free_.pop_back();
  return slot;
}

absl::Status ReadSlots::Grow() {
  const uint64_t bytes = kScratchBytes + kItemBytes + map_.geometry().bucket_bytes;
  KVD_ASSIGN_OR_RETURN(const TransferBuffer block, channel_.Allocate(bytes * kSlotsPerBlock));
  blocks_.push_back(block);
  for (size_t i = 0; i < kSlotsPerBlock; ++i) {
    slots_.push_back(std::make_unique<ReadSlot>(channel_, map_, whole_buckets_));
    slots_.back()->small = block.bytes.subspan(i * bytes, bytes);
    free_.push_back(slots_.back().get());
  }
  return absl::OkStatus();
}

GetMachineCounters ReadSlots::counters() const {
  GetMachineCounters sum;
  for (const auto& slot : slots_) sum += slot->machine.counters();
  return sum;
}

}  // namespace kvd
