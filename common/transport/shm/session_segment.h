// The memory that one session's client and server share: a memfd that the server makes, seals
// against any change of its size and passes to the client. Both sides may write all of it, so
// neither believes anything in it: each keeps its own positions, copies a frame once and judges the
// copy.
//
//   0     +---------------------------------------------+
//         | magic, version, credits, frame and slot size|  written once by the server; for people
//         with a debugger
//   64    +---------------------------------------------+
//         | server_sleeping                             |  set by the server, taken back by whoever
//         wakes it
//   128   +---------------------------------------------+
//         | client_sleeping                             |  the same for the client
//   192   +---------------------------------------------+
//         | closed, text length, text                   |  why the server ended the session
//   448   +---------------------------------------------+
//         | reserved, zero                              |
//   4096  +---------------------------------------------+
//         | request ring: `credits` slots               |  client -> server
//         +---------------------------------------------+
//         | reply ring: `credits` slots                 |  server -> client
//         +---------------------------------------------+
//
//   slot  0        4        8
//         +--------+--------+------------------------+
//         | stamp  | length | frame                  |
//         +--------+--------+------------------------+
//
// The stamp is the number of the lap in which the slot was filled last (zero: never). It is written
// after the frame, together with the length, as one 8-byte word. Nothing says "taken": credits
// bound what may be outstanding, so the producer knows that the slot it writes next has been read
// (shm/README.md has the argument).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/layout/units.h"

namespace kvd {

inline constexpr uint64_t kSessionMagic = 0x315353455344564b;  // the bytes "KVDSESS1"
inline constexpr uint32_t kSessionLayoutVersion = 1;
inline constexpr uint32_t kSessionTextBytes = 248;
inline constexpr uint32_t kCreditsMax = 1024;

// Buffers that a session may register for pulls.
inline constexpr uint32_t kPullSegmentsMax = 64;
inline constexpr uint64_t kPullBytesMax = uint64_t{16} << 30;

struct SessionHeader {
  uint64_t magic;
  uint32_t layout_version;
  uint32_t credits;
  uint32_t frame_bytes;
  uint32_t slot_bytes;
  uint8_t reserved0[40];
  uint32_t server_sleeping;
  uint8_t reserved1[60];
  uint32_t client_sleeping;
  uint8_t reserved2[60];
  uint32_t closed;  // zero while the session lives, then the absl::StatusCode of the reason;
                    // written last
  uint32_t text_bytes;
  char text[kSessionTextBytes];
};

static_assert(std::is_standard_layout_v<SessionHeader> &&
              std::has_unique_object_representations_v<SessionHeader>);
static_assert(sizeof(SessionHeader) == 448 && alignof(SessionHeader) == 8);
static_assert(offsetof(SessionHeader, magic) == 0);
static_assert(offsetof(SessionHeader, layout_version) == 8);
static_assert(offsetof(SessionHeader, credits) == 12);
static_assert(offsetof(SessionHeader, frame_bytes) == 16);
static_assert(offsetof(SessionHeader, slot_bytes) == 20);
static_assert(offsetof(SessionHeader, server_sleeping) == 64);
static_assert(offsetof(SessionHeader, client_sleeping) == 128);
static_assert(offsetof(SessionHeader, closed) == 192);
static_assert(offsetof(SessionHeader, text_bytes) == 196);
static_assert(offsetof(SessionHeader, text) == 200);

struct SlotHeader {
  uint32_t stamp;
  uint32_t length_bytes;
};

static_assert(sizeof(SlotHeader) == 8 && std::has_unique_object_representations_v<SlotHeader>);
static_assert(offsetof(SlotHeader, stamp) == 0);
static_assert(offsetof(SlotHeader, length_bytes) == 4);

// Where things lie in a segment: computed by each side from what was agreed at admission, never
// read from the segment.
struct SessionLayout {
  uint32_t credits = 0;
  uint32_t frame_bytes = 0;
  uint32_t slot_bytes = 0;

  // An odd number of cache lines a slot, so that the first lines of all slots spread over all sets
  // of a cache.
  static constexpr SessionLayout Of(uint32_t credits, uint32_t frame_bytes) {
    const uint32_t lines =
        (sizeof(SlotHeader) + frame_bytes + kCacheLineBytes - 1) / kCacheLineBytes;
    return SessionLayout{credits, frame_bytes, (lines | 1) * kCacheLineBytes};
  }

  constexpr uint64_t ring_bytes() const { return uint64_t{credits} * slot_bytes; }
  constexpr uint64_t requests_offset() const { return kPageBytes; }
  constexpr uint64_t replies_offset() const { return kPageBytes + ring_bytes(); }
  constexpr uint64_t segment_bytes() const {
    return (kPageBytes + 2 * ring_bytes() + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
};

static_assert(SessionLayout::Of(16, 4608).slot_bytes == 73 * kCacheLineBytes);
static_assert(SessionLayout::Of(1, 4088).slot_bytes % kPageBytes != 0);

// What goes over a session's socket after the handshake, each as one packet. Client to server: a
// doorbell of one byte, or a SegmentNotice; server to client: doorbells only.
inline constexpr uint8_t kDoorbell = 0x44;

enum class SegmentAction : uint32_t {
  kRegister = 1,  // with the memfd: from now on pulls may name segment_id
  kForget = 2,    // the server may drop it
};

struct SegmentNotice {
  uint32_t action;      // SegmentAction
  uint32_t segment_id;  // chosen by the client; not zero
  uint64_t length_bytes;
};

static_assert(sizeof(SegmentNotice) == 16 &&
              std::has_unique_object_representations_v<SegmentNotice>);
static_assert(offsetof(SegmentNotice, action) == 0);
static_assert(offsetof(SegmentNotice, segment_id) == 4);
static_assert(offsetof(SegmentNotice, length_bytes) == 8);

}  // namespace kvd
