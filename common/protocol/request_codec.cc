#include "common/protocol/request_codec.h"

#include <array>
#include <cstring>

#include "common/layout/units.h"

namespace kvd {
namespace {

// What a request of each opcode may bring along.
struct Rule {
  bool known = false;
  bool key = false;  // it has one; a prefix, or the name of a text, may be empty
  bool value = false;
  uint8_t flags = 0;
};

constexpr uint8_t kWriteFlags = kRequestRepeat | kRequestExpiry;

constexpr Rule RuleOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kPing:
    case Opcode::kHits:
      return {.known = true, .value = true};
    case Opcode::kGet:
    case Opcode::kExists:
      return {.known = true, .key = true};
    case Opcode::kPut:
      return {.known = true,
              .key = true,
              .value = true,
              .flags = kWriteFlags | kRequestPull | kRequestUserFlags | kRequestConditions};
    case Opcode::kDelete:
      return {.known = true, .key = true, .flags = kRequestRepeat | kRequestIfVersion};
    case Opcode::kIncrement:
      return {.known = true, .key = true, .flags = kWriteFlags | kRequestConditions};
    case Opcode::kAppend:
    case Opcode::kPrepend:
      return {.known = true,
              .key = true,
              .value = true,
              .flags = kWriteFlags | kRequestPull | kRequestIfPresent | kRequestIfVersion};
    case Opcode::kTouch:
      return {
          .known = true, .key = true, .flags = kWriteFlags | kRequestIfVersion | kRequestWithValue};
    case Opcode::kFlush:
    case Opcode::kKick:
    case Opcode::kSessions:
      return {.known = true, .key = true};
    case Opcode::kStat:
    case Opcode::kRelease:
      return {.known = true};
  }
  return {};
}

// By opcode, the unknown ones included.
constexpr std::array<Rule, 256> kRules = [] {
  std::array<Rule, 256> rules{};
  for (size_t opcode = 0; opcode < rules.size(); ++opcode) {
    rules[opcode] = RuleOf(static_cast<Opcode>(opcode));
  }
  return rules;
}();

constexpr uint8_t kOptionFlags = kRequestExpiry | kRequestUserFlags | kRequestConditions;

// A field without its flag is zero, with it it means something; at most one condition.
FrameError CheckOptions(const RequestHeader& header) {
  const bool none = (header.flags & kOptionFlags) == 0;
  if (none && (header.expiry_unix_us | header.user_flags | header.compare_version) == 0)
    return nullptr;
  const auto agrees = [&header](uint8_t flag, uint64_t field) {
    return ((header.flags & flag) != 0) == (field != 0);
  };
  if (!agrees(kRequestExpiry, header.expiry_unix_us))
    return "expiry without its flag, or the flag without expiry";
  if (!agrees(kRequestUserFlags, header.user_flags))
    return "user flags without their flag, or the flag without them";
  if (!agrees(kRequestIfVersion, header.compare_version))
    return "version without its flag, or the flag without version";
  const uint8_t conditions = header.flags & kRequestConditions;
  if ((conditions & (conditions - 1)) != 0) return "more than one condition";
  return nullptr;
}

}  // namespace

FrameError DecodeRequest(std::span<const std::byte> frame, RequestView& request) {
  request.key = {};
  request.value = {};
  if (frame.size() < sizeof(RequestHeader)) {
    request.header = {};
    return "frame is shorter than a request header";
  }
  std::memcpy(&request.header, frame.data(), sizeof(RequestHeader));
  const RequestHeader& header = request.header;
  if (header.request_id == 0) return "request id is zero";
  if (header.reserved != 0) return "reserved field is not zero";
  const auto opcode = static_cast<Opcode>(header.opcode);
  const Rule& rule = kRules[header.opcode];
  if (!rule.known) return "unknown opcode";
  if (rule.key) {
    if (header.key_len == 0 && opcode != Opcode::kFlush && opcode != Opcode::kSessions)
      return "key is empty";
    if (header.key_len > kKeyBytesMax) return "key is longer than 4096 bytes";
  } else if (header.key_len != 0) {
    return "key where none belongs";
  }
  if ((header.flags & ~rule.flags) != 0) return "flag that this opcode does not have";
  if (!rule.value && header.value_len != 0) return "value where none belongs";
  if (FrameError error = CheckOptions(header); error != nullptr) return error;
  const bool pulled = (header.flags & kRequestPull) != 0;
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
  reply.payload =
      std::string_view(reinterpret_cast<const char*>(frame.data()) + sizeof(ReplyHeader),
                       frame.size() - sizeof(ReplyHeader));
  if ((reply.header.flags & kReplyInline) != 0 && reply.header.value_len != reply.payload.size()) {
    return "inline value is not as long as its header says";
  }
  return nullptr;
}

}  // namespace kvd
