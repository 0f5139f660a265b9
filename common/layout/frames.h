// Requests and replies: the same bytes over RDMA SEND/RECV and over a shared-memory ring. Little-endian.
//
//   request   +-----------------------+-----+----------------------------+
//             | RequestHeader (64)    | key | value, unless it is pulled |
//             +-----------------------+-----+----------------------------+
//   reply     +-----------------------+----------------------------------+
//             | ReplyHeader (56)      | value, statistics or error text  |
//             +-----------------------+----------------------------------+
//
// A frame's own length comes from the transport and is at most the frame size agreed at admission. Each request is
// answered by exactly one reply with its id; a request holds one credit until then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kvd {

inline constexpr uint32_t kFrameBytesDefault = 4096 + 512;  // longest key, header and a bit
inline constexpr uint32_t kFrameBytesMin = 4096 + 128;
inline constexpr uint32_t kFrameBytesMax = 65536;

enum class Opcode : uint8_t {
  kPing = 1,     // payload is echoed; result = the server's clock, microseconds of Unix time
  kGet = 2,      // GET by request: inline value, or the location of an item that is held for this session
  kPut = 3,
  kDelete = 4,
  kExists = 5,
  kStat = 6,     // argument = byte offset into the statistics text; reply carries a part of it
  kRelease = 7,  // gives back the item held by an earlier kGet of this session
  kIncrement = 8,  // argument = what to add, a signed 64-bit number; result = the new number
  kAppend = 9,     // the value is put behind the one that is there
  kPrepend = 10,   // the value is put before the one that is there
  kTouch = 11,     // sets the expiry, or takes it away where kRequestExpiry is not set
  kFlush = 12,     // deletes items whose keys begin with `key` (any, if empty) from cursor `argument` on, so many as take a
                   // short while; value_len = how many, result = the next cursor, 0 after the last
  kHits = 13,      // what a client tells of its reading: the value is `argument` counts (reported_counts.h), then key hashes
                   // that were read one-sidedly of late, 8 bytes each; result = 1 if the server makes use of hashes, 0 if a
                   // client need not send more of them
  kSessions = 14,  // as kStat: a text with a line for each session; with `key` kSlowLogText for each slow request
  kKick = 15,      // ends the sessions that `key` means, this one excepted; result = how many
};
inline constexpr char kSlowLogText[] = "slow";
inline constexpr uint8_t kOpcodeLast = static_cast<uint8_t>(Opcode::kKick);

// RequestHeader::flags
inline constexpr uint8_t kRequestPull = 1;       // the value is not in the frame: the server pulls it
inline constexpr uint8_t kRequestExpiry = 2;     // `expiry_unix_us` is set
inline constexpr uint8_t kRequestUserFlags = 4;  // `user_flags` is set
inline constexpr uint8_t kRequestRepeat = 8;     // sent before, under the same id, in a session that ended unanswered
inline constexpr uint8_t kRequestIfAbsent = 16;  // only if the key has no item
inline constexpr uint8_t kRequestIfPresent = 32; // only if it has one
inline constexpr uint8_t kRequestIfVersion = 64; // only if it has one of version `compare_version`
inline constexpr uint8_t kRequestWithValue = 128;  // kTouch: the reply carries the item as that of kGet does
inline constexpr uint8_t kRequestConditions = kRequestIfAbsent | kRequestIfPresent | kRequestIfVersion;

struct RequestHeader {
  uint8_t opcode;
  uint8_t flags;
  uint16_t key_len;
  uint32_t user_flags;
  uint64_t request_id;  // never zero; grows with each request of a client id, over all its sessions
  uint64_t value_len;
  uint64_t compare_version;  // zero without kRequestIfVersion
  uint64_t expiry_unix_us;
  uint64_t argument;
  uint64_t pull_address;  // where the peer's buffer holds the value: an address the transport understands
  uint32_t pull_key;      // rkey of that buffer; segment id over shared memory
  uint32_t reserved;      // zero
};

// What became of a request. Stable numbers; a client treats one that it does not know as kInternal.
enum class ReplyStatus : uint16_t {
  kOk = 0,
  kNotFound = 1,
  kConditionFailed = 2,  // there is an item, of `version`, that does not meet it; where there is none: kNotFound
  kTooLarge = 3,       // value over max_value; `value_len` says the limit
  kNoSpace = 4,        // the region is full
  kMalformed = 5,      // the frame broke the format; the session ends
  kUnsupported = 6,    // an opcode or flag this server does not know
  kNotPermitted = 7,
  kPullFailed = 8,     // the value could not be fetched from the peer's buffer; the session ends
  kShuttingDown = 9,
  kBusy = 10,          // a limit of this session was reached; try again
  kInternal = 11,
  kNotNumber = 12,     // kIncrement of a value that is not a signed 64-bit number in decimal
  kOverflow = 13,      // kIncrement beyond 64 bits; nothing was changed
  kDamaged = 14,       // the item's bytes in the region are not what was written; nothing was changed
};

// ReplyHeader::flags
inline constexpr uint8_t kReplyInline = 1;       // the payload is the value
inline constexpr uint8_t kReplyHeld = 2;         // `slot` is held for this session until kRelease or its lease ends
inline constexpr uint8_t kReplyUserFlags = 4;    // `user_flags` is set
inline constexpr uint8_t kReplyErrorText = 8;    // the payload is a text for people

struct ReplyHeader {
  uint8_t opcode;  // of the request
  uint8_t flags;
  uint16_t status;  // ReplyStatus
  uint32_t user_flags;
  uint64_t request_id;
  uint64_t version;    // of the item that was written or found, or is there (kConditionFailed); of a kDelete
  uint64_t slot;       // its slot word: tag, size and location (slot.h); zero if there is none
  uint64_t value_len;  // whole length of the value, statistics text or limit
  uint64_t expiry_unix_us;
  uint64_t result;     // see Opcode; otherwise zero
};

static_assert(std::is_standard_layout_v<RequestHeader> && std::has_unique_object_representations_v<RequestHeader>);
static_assert(sizeof(RequestHeader) == 64 && alignof(RequestHeader) == 8);
static_assert(offsetof(RequestHeader, opcode) == 0);
static_assert(offsetof(RequestHeader, flags) == 1);
static_assert(offsetof(RequestHeader, key_len) == 2);
static_assert(offsetof(RequestHeader, user_flags) == 4);
static_assert(offsetof(RequestHeader, request_id) == 8);
static_assert(offsetof(RequestHeader, value_len) == 16);
static_assert(offsetof(RequestHeader, compare_version) == 24);
static_assert(offsetof(RequestHeader, expiry_unix_us) == 32);
static_assert(offsetof(RequestHeader, argument) == 40);
static_assert(offsetof(RequestHeader, pull_address) == 48);
static_assert(offsetof(RequestHeader, pull_key) == 56);
static_assert(offsetof(RequestHeader, reserved) == 60);

static_assert(std::is_standard_layout_v<ReplyHeader> && std::has_unique_object_representations_v<ReplyHeader>);
static_assert(sizeof(ReplyHeader) == 56 && alignof(ReplyHeader) == 8);
static_assert(offsetof(ReplyHeader, opcode) == 0);
static_assert(offsetof(ReplyHeader, flags) == 1);
static_assert(offsetof(ReplyHeader, status) == 2);
static_assert(offsetof(ReplyHeader, user_flags) == 4);
static_assert(offsetof(ReplyHeader, request_id) == 8);
static_assert(offsetof(ReplyHeader, version) == 16);
static_assert(offsetof(ReplyHeader, slot) == 24);
static_assert(offsetof(ReplyHeader, value_len) == 32);
static_assert(offsetof(ReplyHeader, expiry_unix_us) == 40);
static_assert(offsetof(ReplyHeader, result) == 48);

}  // namespace kvd
