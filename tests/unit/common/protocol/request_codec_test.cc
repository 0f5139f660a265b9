// Frames taken apart: what keeps the format comes back, each breach is named, and no bytes crash
// it.
#include "common/protocol/request_codec.h"

#include <cstring>
#include <memory>
#include <string>

#include "common/base/random.h"
#include "common/layout/units.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

RequestHeader Header(Opcode opcode, size_t key_len = 0, uint64_t value_len = 0, uint8_t flags = 0) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  header.flags = flags;
  header.key_len = static_cast<uint16_t>(key_len);
  header.value_len = value_len;
  header.request_id = 77;
  return header;
}

template <typename Header>
std::string Frame(const Header& header, std::string_view rest = {}) {
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + std::string(rest);
}

// Decodes a copy that ends where its memory ends.
struct Decoded {
  explicit Decoded(std::string_view frame) : memory(std::make_unique<std::byte[]>(frame.size())) {
    if (!frame.empty()) std::memcpy(memory.get(), frame.data(), frame.size());
    bytes = {memory.get(), frame.size()};
  }
  std::unique_ptr<std::byte[]> memory;
  std::span<const std::byte> bytes;
};

std::string RequestError(std::string_view frame) {
  const Decoded decoded(frame);
  RequestView request;
  const FrameError error = DecodeRequest(decoded.bytes, request);
  return error == nullptr ? "" : error;
}

std::string ReplyError(std::string_view frame) {
  const Decoded decoded(frame);
  ReplyView reply;
  const FrameError error = DecodeReply(decoded.bytes, reply);
  return error == nullptr ? "" : error;
}

TEST_CASE("DecodeRequest: valid requests come back") {
  struct Valid {
    Opcode opcode;
    std::string key;
    std::string value;
    uint8_t flags;
  };
  const Valid valid = GENERATE(values<Valid>({
      {Opcode::kPing, "", "", 0},
      {Opcode::kPing, "", "echo", 0},
      {Opcode::kGet, "key", "", 0},
      {Opcode::kPut, "key", "value", 0},
      {Opcode::kPut, "k", "", 0},
      {Opcode::kPut, std::string(4096, 'k'), "v", kRequestExpiry | kRequestUserFlags},
      {Opcode::kPut, "key", "value", kRequestIfVersion | kRequestRepeat},
      {Opcode::kPut, "key", "value", kRequestIfAbsent},
      {Opcode::kDelete, "key", "", kRequestIfVersion},
      {Opcode::kIncrement, "key", "", kRequestIfPresent | kRequestExpiry},
      {Opcode::kAppend, "key", "value", kRequestRepeat},
      {Opcode::kPrepend, "key", "value", kRequestIfVersion},
      {Opcode::kTouch, "key", "", kRequestWithValue},
      {Opcode::kFlush, "", "", 0},
      {Opcode::kFlush, "prefix", "", 0},
      {Opcode::kHits, "", "12345678", 0},
      {Opcode::kSessions, "", "", 0},
      {Opcode::kSessions, kSlowLogText, "", 0},
      {Opcode::kKick, "key:app", "", 0},
      {Opcode::kDelete, "key", "", 0},
      {Opcode::kExists, "key", "", 0},
      {Opcode::kStat, "", "", 0},
      {Opcode::kRelease, "", "", 0},
  }));
  RequestHeader header = Header(valid.opcode, valid.key.size(), valid.value.size(), valid.flags);
  if ((valid.flags & kRequestExpiry) != 0) header.expiry_unix_us = 1;
  if ((valid.flags & kRequestUserFlags) != 0) header.user_flags = 1;
  if ((valid.flags & kRequestIfVersion) != 0) header.compare_version = 1;
  const Decoded decoded(Frame(header, valid.key + valid.value));
  RequestView request;
  REQUIRE(DecodeRequest(decoded.bytes, request) == nullptr);
  CHECK(std::memcmp(&request.header, &header, sizeof(header)) == 0);
  CHECK(request.key == valid.key);
  CHECK(request.value == valid.value);
}

TEST_CASE("DecodeRequest: a value that is pulled is not in the frame") {
  RequestHeader header = Header(Opcode::kPut, 3, uint64_t{1} << 40, kRequestPull);
  const Decoded decoded(Frame(header, "key"));
  RequestView request;
  REQUIRE(DecodeRequest(decoded.bytes, request) == nullptr);
  CHECK(request.value.empty());
  CHECK(request.header.value_len == uint64_t{1} << 40);
  CHECK(RequestError(Frame(header, "keyvalue")) == "key and value do not fill the frame");
}

TEST_CASE("DecodeRequest: each breach of the format has its text") {
  const auto spoiled = [](auto spoil, std::string_view rest) {
    RequestHeader header = Header(Opcode::kPut, 3, 5);
    spoil(header);
    return RequestError(Frame(header, rest));
  };
  using H = RequestHeader;
  CHECK(spoiled([](H&) {}, "keyvalue").empty());
  CHECK(spoiled([](H& h) { h.request_id = 0; }, "keyvalue") == "request id is zero");
  CHECK(spoiled([](H& h) { h.reserved = 1; }, "keyvalue") == "reserved field is not zero");
  CHECK(spoiled([](H& h) { h.opcode = 0; }, "keyvalue") == "unknown opcode");
  CHECK(spoiled([](H& h) { h.opcode = kOpcodeLast + 1; }, "keyvalue") == "unknown opcode");
  CHECK(spoiled([](H& h) { h.opcode = 255; }, "keyvalue") == "unknown opcode");
  CHECK(spoiled([](H& h) { h.flags = kRequestWithValue; }, "keyvalue") ==
        "flag that this opcode does not have");
  CHECK(spoiled([](H& h) { h.flags = kRequestIfAbsent | kRequestIfPresent; }, "keyvalue") ==
        "more than one condition");
  CHECK(spoiled([](H& h) { h.flags = kRequestExpiry; }, "keyvalue") ==
        "expiry without its flag, or the flag without expiry");
  CHECK(spoiled([](H& h) { h.expiry_unix_us = 1; }, "keyvalue") ==
        "expiry without its flag, or the flag without expiry");
  CHECK(spoiled([](H& h) { h.user_flags = 1; }, "keyvalue") ==
        "user flags without their flag, or the flag without them");
  CHECK(spoiled([](H& h) { h.compare_version = 1; }, "keyvalue") ==
        "version without its flag, or the flag without version");
  CHECK(spoiled([](H& h) { h.key_len = 0; }, "value") == "key is empty");
  CHECK(spoiled([](H& h) { h.key_len = 4097; }, std::string(4097 + 5, 'k')) ==
        "key is longer than 4096 bytes");
  CHECK(spoiled([](H& h) { h.opcode = static_cast<uint8_t>(Opcode::kPing); }, "keyvalue") ==
        "key where none belongs");
  CHECK(spoiled([](H& h) { h.opcode = static_cast<uint8_t>(Opcode::kGet); }, "keyvalue") ==
        "value where none belongs");
  CHECK(spoiled([](H& h) { h.key_len = 4; }, "keyvalue") == "key and value do not fill the frame");
  CHECK(spoiled([](H& h) { h.value_len = 4; }, "keyvalue") ==
        "key and value do not fill the frame");
  CHECK(spoiled([](H& h) { h.value_len = 6; }, "keyvalue") ==
        "key and value do not fill the frame");
  CHECK(spoiled([](H& h) { h.value_len = ~uint64_t{0}; }, "keyvalue") ==
        "key and value do not fill the frame");
  CHECK(spoiled([](H& h) { h.value_len = ~uint64_t{0} - 2; }, "keyvalue") ==
        "key and value do not fill the frame");
  for (const uint8_t flag : {kRequestPull, kRequestExpiry, kRequestUserFlags}) {
    CHECK(RequestError(Frame(Header(Opcode::kGet, 3, 0, flag), "key")) ==
          "flag that this opcode does not have");
  }
  CHECK(RequestError(Frame(Header(Opcode::kStat, 0, 1), "x")) == "value where none belongs");
  CHECK(RequestError(Frame(Header(Opcode::kRelease, 3), "key")) == "key where none belongs");
}

TEST_CASE(
    "DecodeRequest: no truncated frame is accepted, and the header comes back as soon as it is "
    "whole") {
  const std::string frame = Frame(Header(Opcode::kPut, 3, 5), "keyvalue");
  for (size_t length = 0; length < frame.size(); ++length) {
    const Decoded decoded(std::string_view(frame).substr(0, length));
    RequestView request;
    request.header.request_id = 1234;
    CAPTURE(length);
    REQUIRE(DecodeRequest(decoded.bytes, request) != nullptr);
    CHECK(request.header.request_id == (length < sizeof(RequestHeader) ? 0 : 77));
  }
  CHECK(RequestError(frame + "x") == "key and value do not fill the frame");
}

TEST_CASE("DecodeReply: valid replies come back") {
  ReplyHeader header{};
  header.request_id = 5;
  header.flags = kReplyInline;
  header.value_len = 5;
  const Decoded decoded(Frame(header, "value"));
  ReplyView reply;
  REQUIRE(DecodeReply(decoded.bytes, reply) == nullptr);
  CHECK(reply.payload == "value");
  CHECK(std::memcmp(&reply.header, &header, sizeof(header)) == 0);
  header.flags = kReplyErrorText;
  header.value_len = 0;
  CHECK(ReplyError(Frame(header, "any text")).empty());
  CHECK(ReplyError(Frame(header)).empty());
}

TEST_CASE("DecodeReply: each breach of the format has its text") {
  ReplyHeader header{};
  CHECK(ReplyError(Frame(header)) == "request id is zero");
  header.request_id = 5;
  header.flags = kReplyInline;
  header.value_len = 5;
  CHECK(ReplyError(Frame(header, "valu")) == "inline value is not as long as its header says");
  CHECK(ReplyError(Frame(header, "value+")) == "inline value is not as long as its header says");
  header.value_len = ~uint64_t{0};
  CHECK(ReplyError(Frame(header, "value")) == "inline value is not as long as its header says");
  for (size_t length = 0; length < sizeof(header); ++length) {
    CHECK(ReplyError(Frame(header).substr(0, length)) == "frame is shorter than a reply header");
  }
}

TEST_CASE(
    "DecodeRequest, DecodeReply: random and flipped frames never crash, and views stay inside the "
    "frame") {
  Random random(Seed());
  const std::string good = Frame(Header(Opcode::kPut, 3, 5), "keyvalue");
  for (int i = 0; i < 300'000; ++i) {
    std::string frame =
        good.substr(0, random.OneIn(2) ? good.size() : random.Uniform(good.size() + 1));
    if (random.OneIn(4)) {
      frame.resize(random.Uniform(200));
      for (char& c : frame) c = static_cast<char>(random.Next());
    }
    for (uint64_t flips = random.Uniform(4); flips > 0 && !frame.empty(); --flips) {
      frame[random.Uniform(frame.size())] ^= static_cast<char>(1 << random.Uniform(8));
    }
    const Decoded decoded(frame);
    const char* begin = reinterpret_cast<const char*>(decoded.bytes.data());
    const auto inside = [&](std::string_view view) {
      return view.empty() ||
             (view.data() >= begin && view.data() + view.size() <= begin + frame.size());
    };
    RequestView request;
    if (DecodeRequest(decoded.bytes, request) == nullptr) {
      if (!inside(request.key) || !inside(request.value)) FAIL("a view leaves the frame");
      if (request.key.size() > kKeyBytesMax) FAIL("a key is too long");
      if (request.key.size() + request.value.size() + sizeof(RequestHeader) != frame.size())
        FAIL("bytes are left");
    }
    ReplyView reply;
    if (DecodeReply(decoded.bytes, reply) == nullptr && !inside(reply.payload))
      FAIL("a view leaves the frame");
  }
}

}  // namespace
}  // namespace kvd::test
