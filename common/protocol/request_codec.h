// Requests and replies as bytes: taking them apart without trusting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/layout/frames.h"
#include "common/layout/hello.h"

namespace kvd {

// A request that kept the format. Views point into the frame.
struct RequestView {
  RequestHeader header;
  std::string_view key;
  std::string_view value;  // empty if the value is to be pulled
};

struct ReplyView {
  ReplyHeader header;
  std::string_view payload;
};

// Why a frame was refused: a constant text for people, nullptr if it was not.
using FrameError = const char*;

// Takes `frame` apart. Checks: whole header, request id not zero, reserved zero, key length within the limits for its
// opcode, key and value exactly filling the frame, no unknown opcode or flag. On an error `request` has a header only
// if the frame was at least that long (so that the reply can name the request id; otherwise the id is zero).
FrameError DecodeRequest(std::span<const std::byte> frame, RequestView& request);

// The same for a reply: whole header, request id not zero, an inline payload as long as `value_len` says.
FrameError DecodeReply(std::span<const std::byte> frame, ReplyView& reply);

// Whether requests of this opcode change what later ones see, so that executing one twice would differ from once. FLUSH is
// none: what it deletes is not there the second time, and what was written since is deleted by either.
constexpr bool IsWrite(uint8_t opcode) {
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::kPut:
    case Opcode::kDelete:
    case Opcode::kIncrement:
    case Opcode::kAppend:
    case Opcode::kPrepend:
    case Opcode::kTouch:
      return true;
    case Opcode::kPing:
    case Opcode::kGet:
    case Opcode::kExists:
    case Opcode::kStat:
    case Opcode::kRelease:
    case Opcode::kFlush:
    case Opcode::kHits:
    case Opcode::kSessions:
    case Opcode::kKick:
      break;
  }
  return false;
}

// The least role of a session that may ask for it.
constexpr Role RoleFor(Opcode opcode) {
  switch (opcode) {
    case Opcode::kPing:
    case Opcode::kGet:
    case Opcode::kExists:
    case Opcode::kStat:
    case Opcode::kRelease:
    case Opcode::kHits:
      return Role::kRead;
    case Opcode::kPut:
    case Opcode::kDelete:
    case Opcode::kIncrement:
    case Opcode::kAppend:
    case Opcode::kPrepend:
    case Opcode::kTouch:
    case Opcode::kFlush:
      return Role::kReadWrite;
    case Opcode::kSessions:
    case Opcode::kKick:
      break;
  }
  return Role::kAdmin;
}

}  // namespace kvd
