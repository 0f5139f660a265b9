// Checked words: only the word that was written, in its place, in its incarnation, is believed.
#include "common/layout/checked_word.h"

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd::test {
namespace {

constexpr auto kDirectory = CheckedWordKind::kDirectoryEntry;
constexpr auto kCount = CheckedWordKind::kBucketCount;

TEST_CASE("CheckedWord: the value comes back") {
  Random random(Seed());
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t place = random.Uniform(1 << 20);
    const uint64_t incarnation = random.Next();
    const auto value = static_cast<uint32_t>(random.Next());
    const uint64_t word = PackCheckedWord(kDirectory, place, incarnation, value);
    if (UnpackCheckedWord(kDirectory, place, incarnation, word) != value) FAIL(value);
  }
}

TEST_CASE("CheckedWord: zero is not set, and no value packs to zero") {
  Random random(Seed());
  for (int i = 0; i < 1000; ++i) {
    const uint64_t incarnation = random.Next();
    CHECK_FALSE(UnpackCheckedWord(kDirectory, 0, incarnation, 0).has_value());
    CHECK(PackCheckedWord(kDirectory, 0, incarnation, 0) >> 63 == 1);
  }
  const uint64_t zero = PackCheckedWord(kCount, 3, 5, 0);
  CHECK(UnpackCheckedWord(kCount, 3, 5, zero) == 0u);
}

TEST_CASE("CheckedWord: no flipped bit verifies") {
  Random random(Seed());
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t place = random.Uniform(1 << 20);
    const uint64_t incarnation = random.Next();
    const uint64_t word =
        PackCheckedWord(kCount, place, incarnation, static_cast<uint32_t>(random.Next()));
    for (int bit = 0; bit < 64; ++bit) {
      if (UnpackCheckedWord(kCount, place, incarnation, word ^ uint64_t{1} << bit))
        FAIL("bit " << bit);
    }
  }
}

TEST_CASE("CheckedWord: a word of another place, incarnation or kind does not verify") {
  Random random(Seed());
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t place = random.Uniform(1 << 20);
    const uint64_t incarnation = random.Next();
    const uint64_t word = PackCheckedWord(kDirectory, place, incarnation, static_cast<uint32_t>(i));
    if (UnpackCheckedWord(kDirectory, place + 1, incarnation, word) ||
        UnpackCheckedWord(kDirectory, place, incarnation + 1, word) ||
        UnpackCheckedWord(kDirectory, place, random.Next(), word) ||
        UnpackCheckedWord(kCount, place, incarnation, word)) {
      FAIL("place " << place << " incarnation " << incarnation << " value " << i);
    }
  }
}

TEST_CASE("CheckedWord: halves of two words do not verify together") {
  Random random(Seed());
  for (uint32_t i = 0; i < 10'000; ++i) {
    const uint64_t incarnation = random.Next();
    const uint64_t older = PackCheckedWord(kCount, 0, incarnation, i);
    const uint64_t newer = PackCheckedWord(kCount, 0, incarnation, i + 1);
    const uint64_t torn = (older & 0xffffffff00000000) | (newer & 0xffffffff);
    if (UnpackCheckedWord(kCount, 0, incarnation, torn)) FAIL("count " << i);
  }
}

}  // namespace
}  // namespace kvd::test
