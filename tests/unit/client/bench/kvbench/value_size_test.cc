#include "client/bench/kvbench/value_size.h"

#include <map>
#include <vector>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/bench/kvbench/chi_square.h"

namespace kvd::bench {
namespace {

TEST_CASE("ValueSizes: a size, a range, a list with weights") {
  const auto sizes = ParseValueSizes("64:70,1k..1030:20,4k:10");
  KVD_REQUIRE_OK(sizes);
  CHECK(sizes->min() == 64);
  CHECK(sizes->max() == 4096);
  CHECK(sizes->Mean() == Approx(0.7 * 64 + 0.2 * 1027 + 0.1 * 4096));
  CHECK(sizes->text() == "64:70,1k..1030:20,4k:10");
  std::map<uint64_t, uint64_t> counts;
  Random random(4);
  for (int i = 0; i < 1'000'000; ++i) ++counts[sizes->Draw(random)];
  REQUIRE(counts.size() == 9);  // 64, 1024 to 1030, 4096
  std::vector<uint64_t> found;
  std::vector<double> weights;
  for (const auto& [size, count] : counts) {
    found.push_back(count);
    weights.push_back(size == 64 ? 70 : size == 4096 ? 10 : 20.0 / 7);
  }
  const auto chi = test::ChiSquareOf(found, weights);
  CHECK(chi.statistic < chi.limit);
}

TEST_CASE("ValueSizes: a few sizes stand for all, with their shares") {
  const auto sizes = ParseValueSizes("64:3,1000..1003:1");
  KVD_REQUIRE_OK(sizes);
  using Shares = std::vector<std::pair<uint64_t, double>>;
  CHECK(sizes->Spread(8) ==
        Shares{{64, 0.75}, {1000, 0.0625}, {1001, 0.0625}, {1002, 0.0625}, {1003, 0.0625}});
  CHECK(sizes->Spread(2) == Shares{{64, 0.75}, {1001, 0.125}, {1003, 0.125}});
  double mean = 0;
  const auto wide = ParseValueSizes("1..1000000");
  KVD_REQUIRE_OK(wide);
  for (const auto& [size, share] : wide->Spread(100)) mean += static_cast<double>(size) * share;
  CHECK(mean == Approx(wide->Mean()).epsilon(0.001));
}

TEST_CASE("ValueSizes: one size is always that one") {
  Random random(1);
  CHECK(ValueSizes::Fixed(100).Draw(random) == 100);
  const auto sizes = ParseValueSizes("1m");
  KVD_REQUIRE_OK(sizes);
  CHECK(sizes->Draw(random) == 1 << 20);
}

TEST_CASE("ValueSizes: what is not understood is named, and what is allowed too") {
  for (const char* text :
       {"", "x", "0", "5..2", "64..", "..64", "64:0", "64:x", "64,", "2g", "0..8", "64:1000001"}) {
    CAPTURE(text);
    const auto sizes = ParseValueSizes(text);
    KVD_REQUIRE_CODE(sizes, kInvalidArgument);
    CHECK(test::MessageOf(sizes).starts_with(text));
    CHECK(test::MessageOf(sizes).find("64..4096") != std::string::npos);
  }
}

}  // namespace
}  // namespace kvd::bench
