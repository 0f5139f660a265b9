// Every implementation gives the same value at every length and alignment, and any change shows.
#include "common/base/checksum.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/checksum_variants.h"
#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

struct Variant {
  const char* name;
  internal::ChecksumFunction* function;
};

// Those that this CPU can run.
std::vector<Variant> Variants() {
  std::vector<Variant> variants = {{"baseline", internal::Checksum64Baseline}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) variants.push_back({"avx2", internal::Checksum64Avx2});
  if (__builtin_cpu_supports("avx512f")) variants.push_back({"avx512", internal::Checksum64Avx512});
#endif
  return variants;
}

std::vector<unsigned char> RandomBytes(size_t count, Random& random) {
  std::vector<unsigned char> bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.Next());
  return bytes;
}

TEST_CASE("Checksum64: values are those of XXH3-64") {
  CHECK(Checksum64(nullptr, 0, 0) == 0x2D06800538D394C2);
  CHECK(Checksum64("abc", 3, 0) == 0x78AF5F94892F3950);
  CHECK(Checksum32("abc", 3, 0) == 0x892F3950);
}

TEST_CASE("Checksum64: all implementations agree at every length and alignment") {
  Random random(test::Seed());
  const std::vector<unsigned char> data = RandomBytes(70'000, random);
  for (const Variant& variant : Variants()) {
    CAPTURE(variant.name);
    for (size_t length = 0; length <= 4200; ++length) {
      const uint64_t seed = random.Next();
      const unsigned char* const start = data.data() + random.Uniform(64);
      const uint64_t expected = internal::Checksum64Baseline(start, length, seed);
      CAPTURE(length, seed);
      REQUIRE(variant.function(start, length, seed) == expected);
      REQUIRE(Checksum64(start, length, seed) == expected);
    }
    REQUIRE(variant.function(data.data(), data.size(), 5) ==
            internal::Checksum64Baseline(data.data(), data.size(), 5));
  }
}

TEST_CASE("Checksum64: one changed bit anywhere shows") {
  Random random(test::Seed());
  for (const size_t length : {size_t{1}, size_t{8}, size_t{16}, size_t{17}, size_t{128},
                              size_t{129}, size_t{240}, size_t{241}, size_t{1024}, size_t{1500}}) {
    std::vector<unsigned char> data = RandomBytes(length, random);
    const uint64_t seed = random.Next();
    const uint64_t before = Checksum64(data.data(), length, seed);
    for (size_t bit = 0; bit < 8 * length; ++bit) {
      const auto mask = static_cast<unsigned char>(1U << (bit % 8));
      data[bit / 8] ^= mask;
      CAPTURE(length, bit, seed);
      REQUIRE(Checksum64(data.data(), length, seed) != before);
      data[bit / 8] ^= mask;
    }
    CHECK(Checksum64(data.data(), length, seed + 1) != before);
  }
}

}  // namespace
}  // namespace kvd
