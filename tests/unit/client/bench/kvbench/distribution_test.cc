#include "client/bench/kvbench/distribution.h"

#include <vector>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/bench/kvbench/chi_square.h"

namespace kvd::bench {
namespace {

using test::ChiSquareOf;

std::vector<uint64_t> Draw(const char* text, uint64_t keys, int draws) {
  const auto distribution = ParseDistribution(text);
  KVD_REQUIRE_OK(distribution);
  KeyChooser chooser(*distribution, keys);
  Random random(11);
  std::vector<uint64_t> counts(keys);
  for (int i = 0; i < draws; ++i) ++counts.at(chooser.Choose(random, keys));
  return counts;
}

std::vector<double> ZipfWeights(uint64_t n) {
  std::vector<double> weights;
  for (uint64_t rank = 1; rank <= n; ++rank)
    weights.push_back(std::pow(static_cast<double>(rank), -0.99));
  return weights;
}

TEST_CASE("Distribution: uniform draws every key alike") {
  const auto chi = ChiSquareOf(Draw("uniform", 100, 1'000'000), std::vector<double>(100, 1.0));
  CHECK(chi.statistic < chi.limit);
}

TEST_CASE("Distribution: zipf prefers the first keys, latest the last ones") {
  const std::vector<double> weights = ZipfWeights(30);
  const auto zipf = ChiSquareOf(Draw("zipf:0.99", 30, 1'000'000), weights);
  CHECK(zipf.statistic < zipf.limit);
  const auto latest =
      ChiSquareOf(Draw("latest", 30, 1'000'000), {weights.rbegin(), weights.rend()});
  CHECK(latest.statistic < latest.limit);
}

TEST_CASE("Distribution: latest follows the keys that come") {
  KeyChooser chooser({.kind = Distribution::Kind::kLatest}, 10);
  Random random(2);
  std::vector<uint64_t> counts(30);
  for (uint64_t count = 10; count <= 30; ++count) {
    for (int i = 0; i < 1000; ++i) REQUIRE(chooser.Choose(random, count) < count);
  }
  for (int i = 0; i < 1'000'000; ++i) ++counts.at(chooser.Choose(random, 30));
  const std::vector<double> weights = ZipfWeights(30);
  const auto chi = ChiSquareOf(counts, {weights.rbegin(), weights.rend()});
  CHECK(chi.statistic < chi.limit);
}

TEST_CASE("Distribution: texts that are understood are printed the same way") {
  for (const char* text : {"uniform", "zipf:0.99", "zipf:1", "latest:0.5"}) {
    const auto parsed = ParseDistribution(text);
    KVD_REQUIRE_OK(parsed);
    CHECK(parsed->Text() == text);
  }
  CHECK(ParseDistribution("zipf")->Text() == "zipf:0.99");
  CHECK(ParseDistribution("latest")->Text() == "latest:0.99");
}

TEST_CASE("Distribution: what is not understood is named, and what is allowed too") {
  for (const char* text : {"", "zpf", "zipf:", "zipf:x", "zipf:0", "zipf:-1", "zipf:11", "zipf:nan",
                           "uniform:1", "latest:0"}) {
    CAPTURE(text);
    const auto parsed = ParseDistribution(text);
    KVD_REQUIRE_CODE(parsed, kInvalidArgument);
    CHECK(test::MessageOf(parsed).starts_with(text));
    CHECK(test::MessageOf(parsed).find("zipf:THETA") != std::string::npos);
  }
}

}  // namespace
}  // namespace kvd::bench
