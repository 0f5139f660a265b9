// Carries out the reads that a GetMachine asks for, over whatever the channel offers: loads where
// the region is mapped, posted READs where it is not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/buffer_memory.h"
#include "client/internal/get_machine.h"
#include "client/internal/read_buffer.h"
#include "client/internal/read_queue.h"
#include "common/transport/client_channel.h"

namespace kvd {

class RegionReader {
 public:
  // `channel` and `queue`, which is the channel's, outlive the reader.
  RegionReader(ClientChannel& channel, ReadQueue& queue);

  // Drives `machine` from `need` until it needs no more reads and returns what it ended with. The
  // machine's item() then points into this reader's buffers: valid until the next read. Blocks up
  // to the monotonic clock's `deadline_ns`: DeadlineExceeded, or the channel's status. Nothing is
  // returned unless the server was alive after it was read.
  absl::StatusOr<GetMachine::Need> Run(GetMachine& machine, GetMachine::Need need,
                                       int64_t deadline_ns);

  // Whether the deadlines of Run are moved by what an item's size takes (transfer_time.h).
  void AllowForSize(bool allow) { allows_for_size_ = allow; }

  // The bytes that were read last are not needed any more: memory for large items is given back.
  void DoneWithBytes() {
    for (ReadBuffer& buffer : buffers_) {
      if (ticket_.done) buffer.GiveBackIfLarge();
    }
  }

  // From now on items are read so that their values lie in `buffer`, where they fit: `key_bytes` is the length of the key that
  // is looked for. Null: in the reader's own memory again.
  void PlaceItemsIn(std::shared_ptr<BufferMemory> buffer, uint64_t key_bytes) {
    place_ = std::move(buffer);
    place_key_bytes_ = key_bytes;
  }

  // Lets go of a buffer that a READ given up at its deadline was under way to, once it has ended.
  void ForgetIfDone() {
    if (ticket_.done) landing_ = nullptr;
  }

  // One read, for iteration. The bytes are valid until the next read into the same buffer. Errors
  // as Run.
  absl::StatusOr<std::span<const std::byte>> Read(const GetMachine::Read& read,
                                                  int64_t deadline_ns);

  // The quick way to do one read of a remote region: null if the bytes are not there after a little
  // while. Then under_way() tells whether AwaitRead will have them; otherwise nothing was read. They
  // are valid until the next read. Not while an earlier read, given up at its deadline, is under
  // way: what AwaitRead has would be that one's.
  const std::byte* ReadSoon(const GetMachine::Read& read) {
    std::byte* const into = buffers_[static_cast<size_t>(read.into)].IfAtLeast(read.length);
    if (!ticket_.done || into == nullptr) return nullptr;
    return ReadQuickly(read.offset, read.length, into) ? into : nullptr;
  }
  bool under_way() const { return !ticket_.done; }
  const std::byte* AwaitRead(int64_t deadline_ns) {
    return FinishRead(deadline_ns).ok() ? ticket_.into : nullptr;
  }

  // Waits before round number `round` of something that has to be read again, longer each time.
  // DeadlineExceeded.
  static absl::Status BackOff(int round, int64_t deadline_ns);

  // Ok if the server that owns the region is alive; looks at memory only where the region is
  // mapped.
  absl::Status CheckAlive();

  // A READ that somebody else posts: for the counters.
  void CountRead(uint64_t bytes) {
    ++reads_;
    read_bytes_ += bytes;
  }

  uint64_t reads() const { return reads_; }
  uint64_t read_bytes() const { return read_bytes_; }

 private:
  bool ReadQuickly(RegionOffset offset, uint64_t length, std::byte* into) {
    ticket_.offset = offset;
    ticket_.length = length;
    ticket_.into = into;
    const bool read = queue_.TryRead(ticket_);
    if (read || !ticket_.done) CountRead(length);
    return read;
  }
  absl::StatusOr<std::byte*> PlaceOf(const GetMachine::Read& read);
  absl::Status PostAndWait(const GetMachine::Read& read, std::byte* into, int64_t deadline_ns);
  // Waits for the READ under way, and gives it up if it is not done in time.
  absl::Status FinishRead(int64_t deadline_ns);
  absl::Status AwaitDone(int64_t deadline_ns);

  ClientChannel& channel_;
  ReadQueue& queue_;
  const std::span<const std::byte> window_;
  ReadBuffer buffers_[3];  // by GetMachine::Into
  std::shared_ptr<BufferMemory> place_;
  uint64_t place_key_bytes_ = 0;
  std::shared_ptr<BufferMemory> landing_;  // that the READ under way lands in
  bool allows_for_size_ = false;
  uint64_t reads_ = 0;
  uint64_t read_bytes_ = 0;
  ReadTicket ticket_;  // not done after a deadline: its READ may still land
};

}  // namespace kvd
