// Requests and replies: what is accepted lies within its frame and within its limits, and what is
// refused has a reason. And a ring that its peer has written at will: a frame is not longer than
// frames are, or the ring is broken.
#include <vector>

#include "common/protocol/client_report.h"
#include "common/protocol/request_codec.h"
#include "common/transport/shm/ring.h"
#include "tests/fuzz/fuzz.h"

namespace kvd::fuzz {
namespace {

void ARequest(std::span<const std::byte> frame) {
  RequestView request;
  const FrameError error = DecodeRequest(frame, request);
  if (error != nullptr) {
    Require(error[0] != '\0', "a refusal says why");
    return;
  }
  Require(request.header.request_id != 0, "a request has a number");
  Require(Within(request.key, frame) && Within(request.value, frame),
          "key and value lie in the frame");
  Require(request.key.size() <= kKeyBytesMax, "a key is not longer than keys are");
  Require(sizeof(RequestHeader) + request.key.size() + request.value.size() == frame.size(),
          "they fill it");
  ClientReport report;
  if (DecodeReport(request, report) == nullptr) {
    Require(Within(report.hashes, frame), "hashes lie in the frame");
    Require(report.hashes.size() % sizeof(uint64_t) == 0, "they are whole");
    Require(report.hashes.size() / sizeof(uint64_t) + request.header.argument ==
                request.value.size() / sizeof(uint64_t),
            "counts and hashes fill the value");
  }
  (void)IsWrite(request.header.opcode);
  Require(RoleFor(static_cast<Opcode>(request.header.opcode)) != Role::kNone,
          "every opcode needs a role");
}

void AReply(std::span<const std::byte> frame) {
  ReplyView reply;
  if (DecodeReply(frame, reply) != nullptr) return;
  Require(reply.header.request_id != 0, "a reply has a number");
  Require(Within(reply.payload, frame), "the payload lies in the frame");
}

void ARing(std::span<const std::byte> bytes) {
  constexpr SessionLayout kLayout{.credits = 4, .frame_bytes = 120, .slot_bytes = 128};
  std::vector<uint64_t> slots(kLayout.credits * kLayout.slot_bytes / sizeof(uint64_t));
  std::memcpy(slots.data(), bytes.data(), std::min(bytes.size(), slots.size() * sizeof(uint64_t)));
  RingConsumer ring(reinterpret_cast<std::byte*>(slots.data()), kLayout);
  std::vector<std::byte> frame(kLayout.frame_bytes);
  for (uint32_t taken = 0; taken < 2 * kLayout.credits; ++taken) {
    size_t length = 0;
    if (ring.Take(frame.data(), length) != RingConsumer::Taken::kFrame) return;
    Require(length <= kLayout.frame_bytes, "a frame is not longer than frames are");
    ARequest({frame.data(), length});
  }
  Require(false, "a ring that nobody fills runs empty");
}

}  // namespace
}  // namespace kvd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const kvd::fuzz::Exactly frame(std::as_bytes(std::span<const uint8_t>(data, size)));
  kvd::fuzz::ARequest(frame.bytes());
  kvd::fuzz::AReply(frame.bytes());
  kvd::fuzz::ARing(frame.bytes());
  return 0;
}
