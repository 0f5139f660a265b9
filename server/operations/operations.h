// What each request does: one decoded request against one shard gives one reply. No I/O, no
// sessions, no threads.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/layout/frames.h"
#include "common/protocol/request_codec.h"
#include "server/store/shard.h"

namespace kvd {

struct OperationLimits {
  uint64_t max_value_bytes = 0;
  uint32_t frame_bytes = kFrameBytesDefault;
};

// A reply before it is sent.
struct Outcome {
  ReplyHeader header{};
  // Of the request, of the shard (until its next write), or a constant: to be sent or copied at
  // once.
  std::string_view payload;
  // The reply, if it has a request id, is the session's last: the frame broke the format, say.
  bool ends_session = false;
};

// Requests that need no shard.
Outcome AnswerPing(const RequestView& request, uint64_t now_unix_us);
Outcome AnswerRelease(const RequestView& request);
// The part of `text` that begins at the request's argument, as much as a frame holds; value_len is
// the whole length.
Outcome AnswerText(const RequestView& request, std::string_view text, uint32_t frame_bytes);
// The session's role does not suffice for the request, which is for `needed`.
Outcome AnswerNotPermitted(const RequestView& request, Role needed);
// As many bytes are on their way from this session as it may have.
Outcome AnswerTooManyPulls(const RequestView& request);
Outcome AnswerKick(const RequestView& request, uint64_t ended);
// A request that DecodeRequest refused: kUnsupported if it is of a later version (an opcode or flag
// that this server does not know), else kMalformed.
Outcome AnswerBadFrame(const RequestView& request, FrameError error);
Outcome AnswerError(const RequestHeader& request, ReplyStatus status, std::string_view text);
// HITS that was in order, whose hashes are the caller's to pass on. `used`: whether anything comes
// of them.
Outcome AnswerHits(const RequestView& request, bool used);

// Where a FLUSH goes on, as its `argument` and `result` say it: shard after shard, each in
// WalkOrder (common/protocol/geometry.h). Zero is the beginning, and as a result the end.
struct FlushCursor {
  uint32_t shard = 0;
  uint32_t position = 0;

  static FlushCursor Of(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word)};
  }
  uint64_t word() const { return uint64_t{shard} << 32 | position; }
};

// Whether the value of this request is to be pulled: BeginPulled, then the pull, then
// FinishPulled.
inline bool IsPulled(const RequestView& request) {
  return (request.header.flags & kRequestPull) != 0;
}

// Whether the request has a key, which then decides the shard.
inline bool HasKey(const RequestView& request) { return request.header.key_len != 0; }

// The requests that have a key, and FLUSH, against the shard that owns it; on that shard's thread.
// Each takes a request that DecodeRequest accepted and the hash of its key.
class Operations {
 public:
  // The shard outlives this object.
  Operations(Shard& shard, const OperationLimits& limits) : shard_(shard), limits_(limits) {}

  // Whatever has its value in the frame. A reply with kReplyHeld means that the shard
  // holds the slot in it until the caller releases it.
  Outcome Execute(const RequestView& request, uint64_t hash);

  // The first half of a PUT, APPEND or PREPEND whose value is pulled. True: `reservation` is to be
  // filled and given to FinishPulled; false: `outcome` is the answer, and nothing has changed.
  bool BeginPulled(const RequestView& request, uint64_t hash, Reservation& reservation,
                   Outcome& outcome);
  // The second half. `pulled` false: the value did not arrive whole; nothing has changed then, and
  // the session ends.
  Outcome FinishPulled(const RequestHeader& request, const Reservation& reservation, bool pulled);

 private:
  Outcome Get(const RequestView& request, uint64_t hash);
  Outcome Put(const RequestView& request, uint64_t hash);
  Outcome Exists(const RequestView& request, uint64_t hash);
  Outcome Increment(const RequestView& request, uint64_t hash);
  Outcome Extend(const RequestHeader& request, std::string_view key, uint64_t hash,
                 std::string_view piece);
  Outcome Touch(const RequestView& request, uint64_t hash);
  Outcome Flush(const RequestView& request);
  Outcome TooLarge(const RequestHeader& request) const;
  Outcome OfWrite(const RequestHeader& request, const StoreResult& result) const;

  Shard& shard_;
  const OperationLimits limits_;
};

}  // namespace kvd
