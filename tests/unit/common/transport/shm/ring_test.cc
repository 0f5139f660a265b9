#include "common/transport/shm/ring.h"

#include <string>
#include <vector>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

struct Ring {
  explicit Ring(uint32_t credits, uint32_t frame_bytes = 4608)
      : layout(SessionLayout::Of(credits, frame_bytes)),
        memory(layout.ring_bytes() / 8),
        slots(reinterpret_cast<std::byte*>(memory.data())),
        producer(slots, layout),
        consumer(slots, layout),
        buffer(frame_bytes / 8 + 1) {}

  RingConsumer::Taken Take(std::string& text) {
    size_t length = 0;
    auto* into = reinterpret_cast<std::byte*>(buffer.data());
    const RingConsumer::Taken taken = consumer.Take(into, length);
    if (taken == RingConsumer::Taken::kFrame) {
      text.assign(reinterpret_cast<const char*>(into), length);
    }
    return taken;
  }

  SessionLayout layout;
  std::vector<uint64_t> memory;
  std::byte* slots;
  RingProducer producer;
  RingConsumer consumer;
  std::vector<uint64_t> buffer;
};

FrameParts Frame(std::string_view text) { return FrameParts{{}, text, {}}; }

}  // namespace

TEST_CASE("Ring: gives back what was pushed, in order, over many laps") {
  Random random(Seed());
  for (const uint32_t credits : {1u, 2u, 7u, 64u}) {
    Ring ring(credits);
    uint64_t pushed = 0;
    uint64_t taken = 0;
    while (taken < 5000) {
      if (pushed - taken < credits && random.OneIn(2)) {
        ring.producer.Push(Frame(std::to_string(pushed++)));
      } else {
        std::string text;
        const auto result = ring.Take(text);
        if (pushed == taken) {
          REQUIRE(result == RingConsumer::Taken::kNothing);
          REQUIRE_FALSE(ring.consumer.Ready());
        } else {
          REQUIRE(result == RingConsumer::Taken::kFrame);
          REQUIRE(text == std::to_string(taken++));
        }
      }
    }
  }
}

TEST_CASE("Ring: takes the longest frame and refuses one byte more") {
  Ring ring(2, 4608);
  const std::string longest(4608, 'z');
  ring.producer.Push(Frame(longest));
  std::string text;
  REQUIRE(ring.Take(text) == RingConsumer::Taken::kFrame);
  CHECK(text == longest);
  ring.memory[ring.layout.slot_bytes / 8] = uint64_t{4609} << 32 | 1;
  CHECK(ring.consumer.Ready());
  CHECK(ring.Take(text) == RingConsumer::Taken::kBroken);
}

TEST_CASE("Ring: a stamp of any other lap is broken") {
  for (const uint32_t stamp : {2u, 3u, 1000u, ~0u}) {
    Ring ring(4);
    ring.memory[0] = uint64_t{8} << 32 | stamp;
    std::string text;
    CHECK(ring.Take(text) == RingConsumer::Taken::kBroken);
  }
}

TEST_CASE("Session layout: slots begin on cache lines and never a whole number of pages apart") {
  for (uint32_t frame_bytes = 4224; frame_bytes <= 65536; frame_bytes += 8) {
    const SessionLayout layout = SessionLayout::Of(16, frame_bytes);
    REQUIRE(layout.slot_bytes >= frame_bytes + sizeof(SlotHeader));
    REQUIRE(layout.slot_bytes % kCacheLineBytes == 0);
    REQUIRE(layout.slot_bytes % kPageBytes != 0);
    REQUIRE(layout.segment_bytes() >= layout.replies_offset() + layout.ring_bytes());
  }
}

}  // namespace kvd::test
