#include "common/protocol/request_codec.h"

#include <cstring>

#include "common/layout/units.h"

namespace kvd {
namespace {

bool NeedsKey(Opcode opcode) {
  return opcode == Opcode::kGet || opcode == Opcode::kPut || opcode == Opcode::kDelete || opcode == Opcode::kExists;
}

bool Known(uint8_t opcode) {
  return opcode >= static_cast<uint8_t>(Opcode::kPing) && opcode <= static_cast<uint8_t>(Opcode::kRelease);
}

}  // namespace

FrameError DecodeRequest(std::span<const std::byte> frame, RequestView& request) {
  request = {};
  if (frame.size() < sizeof(RequestHeader)) return "frame is shorter than a request header";
  std::memcpy(&request.header, frame.data(), sizeof(RequestHeader));
  const RequestHeader& header = request.header;
  if (header.request_id == 0) return "request id is zero";
  if (header.reserved != 0) return "reserved field is not zero";
  if (!Known(header.opcode)) return "unknown opcode";
  if ((header.flags & ~kRequestFlagsKnown) != 0) return "unknown flag";
  const auto opcode = static_cast<Opcode>(header.opcode);
  if (NeedsKey(opcode)) {
    if (header.key_len == 0) return "key is empty";
    if (header.key_len > kKeyBytesMax) return "key is longer than 4096 bytes";
  } else if (header.key_len != 0) {
    return "key where none belongs";
  }
  const bool pulled = (header.flags & kRequestPull) != 0;
  if (header.flags != 0 && opcode != Opcode::kPut) return "flag that this opcode does not have";
  if (opcode != Opcode::kPut && opcode != Opcode::kPing && header.value_len != 0) return "value where none belongs";
  const std::span<const std::byte> rest = frame.subspan(sizeof(RequestHeader));
  const uint64_t inline_bytes = pulled ? 0 : header.value_len;
  if (inline_bytes > rest.size() || rest.size() - inline_bytes != header.key_len) {
    return "key and value do not fill the frame";
  }
  const char* bytes = reinterpret_cast<const char*>(rest.data());
  request.key = std::string_view(bytes, header.key_len);
  request.value = std::string_view(bytes + header.key_len, inline_bytes);
  return nullptr;
}

FrameError DecodeReply(std::span<const std::byte> frame, ReplyView& reply) {
  reply = {};
  if (frame.size() < sizeof(ReplyHeader)) return "frame is shorter than a reply header";
  std::memcpy(&reply.header, frame.data(), sizeof(ReplyHeader));
  if (reply.header.request_id == 0) return "request id is zero";
  reply.payload = std::string_view(reinterpret_cast<const char*>(frame.data()) + sizeof(ReplyHeader),
                                   frame.size() - sizeof(ReplyHeader));
  if ((reply.header.flags & kReplyInline) != 0 && reply.header.value_len != reply.payload.size()) {
    return "inline value is not as long as its header says";
  }
  return nullptr;
}

}  // namespace kvd
