#include "client/bench/kvbench/zipf.h"

#include <vector>

#include "tests/support/test.h"
#include "tests/unit/client/bench/kvbench/chi_square.h"

namespace kvd::bench {
namespace {

using test::ChiSquareOf;

std::vector<double> Weights(double theta, uint64_t n) {
  std::vector<double> weights;
  for (uint64_t rank = 1; rank <= n; ++rank)
    weights.push_back(std::pow(static_cast<double>(rank), -theta));
  return weights;
}

TEST_CASE("Zipf: every rank comes as often as its law says") {
  for (const double theta : {0.2, 0.5, 0.99, 1.0, 1.2, 3.0}) {
    CAPTURE(theta);
    constexpr uint64_t kRanks = 40;
    const Zipf zipf(theta, kRanks);
    Random random(17);
    std::vector<uint64_t> counts(kRanks);
    for (int i = 0; i < 500'000; ++i) {
      const uint64_t rank = zipf.Draw(random);
      REQUIRE(rank >= 1);
      REQUIRE(rank <= kRanks);
      ++counts[rank - 1];
    }
    const auto chi = ChiSquareOf(counts, Weights(theta, kRanks));
    CHECK(chi.statistic < chi.limit);
  }
}

TEST_CASE("Zipf: the check would notice an exponent that is off by 0.02") {
  const Zipf zipf(0.99, 40);
  Random random(17);
  std::vector<uint64_t> counts(40);
  for (int i = 0; i < 500'000; ++i) ++counts[zipf.Draw(random) - 1];
  const auto chi = ChiSquareOf(counts, Weights(0.97, 40));
  CHECK(chi.statistic > chi.limit);
}

TEST_CASE("Zipf: so many ranks that they are counted by powers of two") {
  constexpr uint64_t kRanks = 1 << 20;
  const Zipf zipf(0.99, kRanks);
  Random random(5);
  std::vector<uint64_t> counts(21);
  std::vector<double> weights(21);
  const std::vector<double> single = Weights(0.99, kRanks);
  const auto place = [](uint64_t rank) { return static_cast<size_t>(63 - __builtin_clzll(rank)); };
  for (uint64_t rank = 1; rank <= kRanks; ++rank) weights[place(rank)] += single[rank - 1];
  for (int i = 0; i < 1'000'000; ++i) ++counts[place(zipf.Draw(random))];
  weights.pop_back();  // the last holds one rank, which is too few
  counts.pop_back();
  const auto chi = ChiSquareOf(counts, weights);
  CHECK(chi.statistic < chi.limit);
}

TEST_CASE("Zipf: grown is the same as made that large") {
  Zipf grown(0.99, 10);
  grown.GrowTo(1000);
  grown.GrowTo(500);  // never back
  CHECK(grown.n() == 1000);
  const Zipf made(0.99, 1000);
  Random one(3);
  Random other(3);
  for (int i = 0; i < 10'000; ++i) REQUIRE(grown.Draw(one) == made.Draw(other));
}

TEST_CASE("Zipf: one rank, and very many") {
  Random random(1);
  const Zipf single(0.99, 1);
  for (int i = 0; i < 100; ++i) REQUIRE(single.Draw(random) == 1);
  constexpr uint64_t kMany = uint64_t{1} << 47;
  const Zipf many(0.5, kMany);
  uint64_t largest = 0;
  for (int i = 0; i < 1000; ++i) largest = std::max(largest, many.Draw(random));
  CHECK(largest <= kMany);
  CHECK(largest > kMany / 2);
}

}  // namespace
}  // namespace kvd::bench
