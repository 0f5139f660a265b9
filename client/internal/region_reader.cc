#include "client/internal/region_reader.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "client/internal/transfer_time.h"
#include "common/base/clock.h"
#include "common/base/cpu_relax.h"
#include "common/base/status_macros.h"
#include "common/layout/superblock.h"
#include "common/protocol/racy_copy.h"

namespace kvd {
namespace {

constexpr uint64_t kItemBufferFloorBytes = 16384;
constexpr uint64_t kScratchBufferFloorBytes = 1024;
constexpr int kPauseRoundsMax =
    8;  // up to 2^8 pauses, some microseconds; then the processor is given away as well

}  // namespace

RegionReader::RegionReader(ClientChannel& channel, ReadQueue& queue)
    : channel_(channel),
      queue_(queue),
      window_(channel.window()),
      buffers_{{channel, kBucketBytesMax},
               {channel, kItemBufferFloorBytes},
               {channel, kScratchBufferFloorBytes}} {}

absl::StatusOr<GetMachine::Need> RegionReader::Run(GetMachine& machine, GetMachine::Need need,
                                                   int64_t deadline_ns) {
  int rounds = 0;
  int64_t allowed_ns = 0;
  while (need == GetMachine::Need::kRead) {
    if (allows_for_size_ && deadline_ns != INT64_MAX) {
      // Once, however often it has to be read again.
      const int64_t wanted_ns = std::max(allowed_ns, TransferAllowanceNs(machine.read().length));
      deadline_ns += wanted_ns - std::exchange(allowed_ns, wanted_ns);
    }
    if (machine.rounds() != rounds) [[unlikely]] {
      rounds = machine.rounds();
      KVD_RETURN_IF_ERROR(BackOff(rounds, deadline_ns));
    }
    KVD_ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, Read(machine.read(), deadline_ns));
    need = machine.Resume(bytes);
  }
  KVD_RETURN_IF_ERROR(CheckAlive());
  return need;
}

absl::StatusOr<std::span<const std::byte>> RegionReader::Read(const GetMachine::Read& read,
                                                              int64_t deadline_ns) {
  if (window_.empty() && place_ == nullptr && ticket_.done) {
    landing_ = nullptr;
    std::byte* const into = buffers_[static_cast<size_t>(read.into)].IfAtLeast(read.length);
    if (into != nullptr) {
      const bool done = ReadQuickly(read.offset, read.length, into);
      const bool under_way = !ticket_.done;
      if (under_way) KVD_RETURN_IF_ERROR(FinishRead(deadline_ns));
      if (done || under_way) return std::span<const std::byte>(into, read.length);
    }
  }
  if (!ticket_.done) [[unlikely]] {
    // Given up at its deadline: until it completes it may still land in a buffer, and over bytes judged in the meantime.
    KVD_RETURN_IF_ERROR(AwaitDone(deadline_ns));
  }
  KVD_ASSIGN_OR_RETURN(std::byte* const into, PlaceOf(read));
  ++reads_;
  read_bytes_ += read.length;
  if (!window_.empty()) {
    RacyCopy(into, window_.data() + ToBytes(read.offset), read.length);
    // Its partner is what orders the steps of an update in the server.
    LoadFence();
  } else {
    KVD_RETURN_IF_ERROR(PostAndWait(read, into, deadline_ns));
  }
  landing_ = nullptr;
  return std::span<const std::byte>(into, read.length);
}

absl::StatusOr<std::byte*> RegionReader::PlaceOf(const GetMachine::Read& read) {
  landing_ = nullptr;
  if (place_ != nullptr && read.into == GetMachine::Into::kItem) [[unlikely]] {
    const uint64_t before_value = place_->bytes_before_key + place_key_bytes_;
    if (std::byte* const at = place_->PlaceFor(before_value, read.length); at != nullptr) {
      landing_ = place_;
      return at;
    }
  }
  return buffers_[static_cast<size_t>(read.into)].AtLeast(read.length);
}

absl::Status RegionReader::PostAndWait(const GetMachine::Read& read, std::byte* into,
                                       int64_t deadline_ns) {
  ticket_.offset = read.offset;
  ticket_.length = read.length;
  ticket_.into = into;
  queue_.Submit(ticket_);
  return FinishRead(deadline_ns);
}

absl::Status RegionReader::FinishRead(int64_t deadline_ns) {
  if (absl::Status done = AwaitDone(deadline_ns); !done.ok()) {
    queue_.GiveUp(ticket_);  // so that the next one need not wait for all of it
    return done;
  }
  if (ticket_.ok) return absl::OkStatus();
  const absl::Status status = channel_.status();
  return status.ok() ? absl::UnavailableError("a READ failed") : status;
}

absl::Status RegionReader::AwaitDone(int64_t deadline_ns) {
  for (;;) {
    KVD_RETURN_IF_ERROR(queue_.Pump());
    if (ticket_.done) return absl::OkStatus();
    KVD_RETURN_IF_ERROR(channel_.Wait(deadline_ns));
    // Woken by a reply that is not taken here: Wait returns at once until it is.
    if (!ticket_.done && RealClock::Get().NowMonotonicNs() > deadline_ns) {
      return absl::DeadlineExceededError("a READ has not completed in time");
    }
  }
}

absl::Status RegionReader::CheckAlive() {
  if (window_.empty()) return absl::OkStatus();  // a READ that completed is proof enough
  // Its partner is the kernel, which marks the lifeline before it releases what lets the next kvd
  // start.
  LoadFence();
  const auto* superblock = reinterpret_cast<const Superblock*>(window_.data());
  if (LifelineAlive(__atomic_load_n(&superblock->lifeline.word, __ATOMIC_RELAXED)) &&
      __atomic_load_n(channel_.ended(), __ATOMIC_RELAXED) == 0) [[likely]] {
    return absl::OkStatus();
  }
  const absl::Status status = channel_.status();
  return status.ok() ? absl::UnavailableError("kvd is gone; connect again when it is back")
                     : status;
}

absl::Status RegionReader::BackOff(int round, int64_t deadline_ns) {
  for (int i = 0; i < 1 << std::min(round, kPauseRoundsMax); ++i) CpuRelax();
  if (round > kPauseRoundsMax) std::this_thread::yield();
  if (RealClock::Get().NowMonotonicNs() > deadline_ns) {
    return absl::DeadlineExceededError("the item was being written all the time");
  }
  return absl::OkStatus();
}

}  // namespace kvd
