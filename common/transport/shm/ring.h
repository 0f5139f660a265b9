// One direction of a session: a ring of slots in the session segment (session_segment.h). The
// producer's and the consumer's positions are private to each; the shared memory holds frames and
// stamps only.
//
// A slot's word (stamp and length) is stored seq_cst by Push and loaded by Take with acquire, which
// orders the frame. Sleeping needs more than acquire and release: a consumer stores "sleeping"
// (seq_cst) and then loads the word of its next slot (Ready, seq_cst); the producer stores that
// word and then loads "sleeping" (both seq_cst). In the single order of these four at least one
// side sees the other's store, so no wake-up is lost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "common/protocol/racy_copy.h"
#include "common/transport/frame_parts.h"
#include "common/transport/shm/session_segment.h"

namespace kvd {

// A position in the ring and the stamp that belongs to it.
class RingCursor {
 public:
  RingCursor(std::byte* slots, const SessionLayout& layout) : slots_(slots), layout_(layout) {}

  std::byte* frame() const { return slot() + sizeof(SlotHeader); }
  uint64_t* word() const { return reinterpret_cast<uint64_t*>(slot()); }
  uint32_t stamp() const { return lap_; }
  const SessionLayout& layout() const { return layout_; }

  void Advance() {
    if (++index_ < layout_.credits) return;
    index_ = 0;
    ++lap_;  // 2^32 laps on it is compared for equality only
  }

 private:
  std::byte* slot() const { return slots_ + uint64_t{index_} * layout_.slot_bytes; }

  std::byte* slots_;
  SessionLayout layout_;
  uint32_t index_ = 0;
  uint32_t lap_ = 1;
};

class RingProducer {
 public:
  RingProducer(std::byte* slots, const SessionLayout& layout) : cursor_(slots, layout) {}

  // Copies the frame, at most frame_bytes, into the next slot and publishes it. The caller holds a
  // credit for it.
  void Push(const FrameParts& frame) {
    std::byte* to = cursor_.frame();
    to = Append(to, frame.header.data(), frame.header.size());
    to = Append(to, frame.key.data(), frame.key.size());
    Append(to, frame.payload.data(), frame.payload.size());
    const uint64_t word = uint64_t{frame.bytes()} << 32 | cursor_.stamp();
    std::atomic_ref<uint64_t>(*cursor_.word()).store(word, std::memory_order_seq_cst);
    cursor_.Advance();
  }

 private:
  static std::byte* Append(std::byte* to, const void* from, size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
    return to + bytes;
  }

  RingCursor cursor_;
};

class RingConsumer {
 public:
  enum class Taken { kNothing, kFrame, kBroken };

  RingConsumer(std::byte* slots, const SessionLayout& layout) : cursor_(slots, layout) {}

  // Whether Take has something to say. To be used after "sleeping" was stored.
  bool Ready() const {
    return Stamp(std::atomic_ref<uint64_t>(*cursor_.word()).load(std::memory_order_seq_cst)) !=
           cursor_.stamp() - 1;
  }

  // Copies the next frame into `into`, which has room for frame_bytes rounded up to 8. kBroken: the
  // peer wrote a stamp or a length that cannot be; the ring is of no use any more.
  Taken Take(std::byte* into, size_t& length_bytes) {
    const uint64_t word =
        std::atomic_ref<uint64_t>(*cursor_.word()).load(std::memory_order_acquire);
    if (Stamp(word) == cursor_.stamp() - 1) return Taken::kNothing;
    const uint64_t length = word >> 32;
    if (Stamp(word) != cursor_.stamp() || length > cursor_.layout().frame_bytes) {
      return Taken::kBroken;
    }
    RacyCopy(into, cursor_.frame(), (length + 7) & ~uint64_t{7});
    length_bytes = length;
    cursor_.Advance();
    return Taken::kFrame;
  }

 private:
  static uint32_t Stamp(uint64_t word) { return static_cast<uint32_t>(word); }

  RingCursor cursor_;
};

}  // namespace kvd
