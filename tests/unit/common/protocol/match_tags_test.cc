// Which slots may hold a key, against a loop that can be read at a glance.
#include "common/protocol/match_tags.h"

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

uint32_t Reference(const Slot (&slots)[kSlotsPerHeader], uint32_t tag) {
  uint32_t matches = 0;
  for (uint32_t i = 0; i < kSlotsPerHeader; ++i) {
    if (slots[i] != 0 && slots[i] >> 52 == tag) matches |= 1u << i;
  }
  return matches;
}

TEST_CASE("MatchTags: every tag alone, at every place") {
  for (uint32_t tag = 0; tag < 4096; ++tag) {
    for (uint32_t place = 0; place < kSlotsPerHeader; ++place) {
      Slot slots[kSlotsPerHeader] = {};
      slots[place] = PackSlot(tag, 64, RegionOffset{4096});
      if (MatchTags(slots, tag) != 1u << place) FAIL("tag " << tag << " place " << place);
      if (MatchTags(slots, tag ^ 1) != 0) FAIL("tag " << tag << " place " << place);
    }
  }
}

TEST_CASE("MatchTags: random slots with many equal tags, tag 0 and empty slots") {
  Random random(Seed());
  for (int i = 0; i < 200'000; ++i) {
    Slot slots[kSlotsPerHeader];
    const uint64_t tags = 1 + random.Uniform(4);
    for (Slot& slot : slots) {
      slot = random.OneIn(4) ? kEmptySlot : random.Uniform(tags) << 52 | random.Next() >> 12;
      if (random.OneIn(16)) slot &= kSlotTagMask;  // nothing but a tag
    }
    for (uint32_t tag = 0; tag <= tags; ++tag) {
      if (MatchTags(slots, tag) != Reference(slots, tag)) FAIL("tag " << tag);
    }
  }
}

TEST_CASE("MatchTags: empty slots match no tag") {
  const Slot slots[kSlotsPerHeader] = {};
  for (uint32_t tag = 0; tag < 4096; ++tag) CHECK(MatchTags(slots, tag) == 0);
}

}  // namespace
}  // namespace kvd::test
