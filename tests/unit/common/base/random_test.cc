// The generator gives the published sequence, stays in range and spreads evenly.
#include "common/base/random.h"

#include <array>
#include <cstdint>
#include <limits>
#include <set>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

TEST_CASE("Random: a seed gives the same numbers on every machine") {
  // xoshiro256** after SplitMix64(0), computed by the authors' reference code.
  Random random(0);
  CHECK(random.Next() == 0x99EC5F36CB75F2B4);
  CHECK(random.Next() == 0xBF6E1F784956452A);
  CHECK(random.Next() == 0x1A5F849D4933E6E0);
  Random other(1);
  CHECK(other.Next() != Random(0).Next());
}

TEST_CASE("Random: ranges are kept and reached") {
  Random random(test::Seed());
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts[random.Uniform(counts.size())];
  for (const int count : counts) {  // 10,000 expected; 1,000 are more than ten standard deviations
    CHECK(count > 9'000);
    CHECK(count < 11'000);
  }
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random.Between(3, 5));
  CHECK(seen == std::set<uint64_t>{3, 4, 5});
  CHECK(random.Uniform(1) == 0);
  CHECK(random.Between(9, 9) == 9);
  random.Between(0, std::numeric_limits<uint64_t>::max());  // a count of 2^64 does not wrap to 0
  for (int i = 0; i < 1000; ++i) {
    const double value = random.NextDouble();
    REQUIRE(value >= 0.0);
    REQUIRE(value < 1.0);
  }
}

TEST_CASE("RandomU64FromOs: succeeds and does not repeat") {
  std::set<uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    const absl::StatusOr<uint64_t> value = RandomU64FromOs();
    KVD_REQUIRE_OK(value);
    CHECK(seen.insert(*value).second);
  }
}

}  // namespace
}  // namespace kvd
