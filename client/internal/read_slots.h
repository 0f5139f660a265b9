// What GETs that are under way need each: a machine, memory for its READs, and the READ itself.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/buffer_memory.h"
#include "client/internal/get_machine.h"
#include "client/internal/read_buffer.h"
#include "client/internal/read_queue.h"
#include "client/internal/region_map.h"
#include "common/transport/client_channel.h"

namespace kvd {

struct ReadSlot {
  ReadSlot(ClientChannel& channel, RegionMap& map, bool whole_buckets);

  // Where `read` goes. ResourceExhausted: no memory to register.
  absl::StatusOr<std::byte*> BufferFor(const GetMachine::Read& read);

  GetMachine machine;
  ReadTicket ticket;
  std::span<std::byte> small;  // this slot's part of its block
  ReadBuffer large;            // items that do not fit it
  std::shared_ptr<BufferMemory> place;  // or where values are wanted
  uint64_t key_bytes = 0;               // then of the key that is looked for
};

// Grows with the number of GETs under way at once, by blocks of memory so that there are few to register, and keeps what it
// has for the next ones. One thread at a time.
class ReadSlots final : ReadOwner {
 public:
  // `channel` and `map` outlive the slots.
  ReadSlots(ClientChannel& channel, RegionMap& map, bool whole_buckets)
      : channel_(channel), map_(map), whole_buckets_(whole_buckets) {}
  ~ReadSlots();
  ReadSlots(const ReadSlots&) = delete;
  ReadSlots& operator=(const ReadSlots&) = delete;

  // ResourceExhausted: no memory to register.
  absl::StatusOr<ReadSlot*> Take();

  // Takes the slot back: at once, or, if its READ may still land in its memory, when that is done.
  void Give(ReadSlot* slot) {
    if (slot->ticket.done) return Free(slot);
    slot->ticket.owner = this;
    slot->ticket.context = slot;
  }

  // Summed over all slots.
  GetMachineCounters counters() const;

 private:
  absl::Status Grow();
  void Free(ReadSlot* slot) {
    slot->place = nullptr;
    slot->large.GiveBackIfLarge();
    free_.push_back(slot);
  }
  void OnRead(ReadTicket& ticket) override { Free(static_cast<ReadSlot*>(ticket.context)); }

  ClientChannel& channel_;
  RegionMap& map_;
  const bool whole_buckets_;
  std::vector<TransferBuffer> blocks_;
  std::vector<std::unique_ptr<ReadSlot>> slots_;
  std::vector<ReadSlot*> free_;
};

}  // namespace kvd
