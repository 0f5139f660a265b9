// HashKey is XXH3-64 with the seed (part of the layout, so its values are pinned); Mix64 mixes.
#include "common/base/hash.h"

#include <bit>
#include <cstdint>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

TEST_CASE("HashKey: values are those of XXH3-64") {
  CHECK(HashKey("", 0) == 0x2D06800538D394C2);  // the library's own published check value
  CHECK(HashKey("a", 0) == 0xE6C632B61E964E1F);
  CHECK(HashKey("abc", 0) == 0x78AF5F94892F3950);
  const std::string long_key(1000, 'k');
  CHECK(HashKey(long_key, 7) == XXH3_64bits_withSeed(long_key.data(), long_key.size(), 7));
}

TEST_CASE("HashKey: seed, length and zero bytes matter") {
  CHECK(HashKey("key", 1) != HashKey("key", 2));
  CHECK(HashKey(std::string(1, '\0'), 1) != HashKey(std::string(2, '\0'), 1));
}

TEST_CASE("Mix64: one input bit changes about half of the output") {
  Random random(test::Seed());
  int changed = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t word = random.Next();
    changed += std::popcount(Mix64(word) ^ Mix64(word ^ (uint64_t{1} << random.Uniform(64))));
  }
  CHECK(changed > 31'000);  // 32,000 expected, with a standard deviation of about 130
  CHECK(changed < 33'000);
  CHECK(Mix64(0) == 0);
  CHECK(Mix64(1) == 0x5692161D100B05E5);
}

}  // namespace
}  // namespace kvd
