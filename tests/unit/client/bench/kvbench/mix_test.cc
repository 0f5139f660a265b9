#include "client/bench/kvbench/mix.h"

#include <vector>

#include "tests/support/status_testing.h"
#include "tests/support/test.h"
#include "tests/unit/client/bench/kvbench/chi_square.h"

namespace kvd::bench {
namespace {

TEST_CASE("Mix: the workloads of YCSB are as YCSB defines them") {
  const struct {
    const char* name;
    std::array<double, kOperations> shares;
    const char* distribution;
  } kWorkloads[] = {
      {"a", {0.5, 0.5, 0, 0}, "zipf:0.99"}, {"B", {0.95, 0.05, 0, 0}, "zipf:0.99"},
      {"c", {1, 0, 0, 0}, "zipf:0.99"},     {"d", {0.95, 0, 0.05, 0}, "latest:0.99"},
      {"F", {0.5, 0, 0, 0.5}, "zipf:0.99"}, {"95:5", {0.95, 0.05, 0, 0}, "uniform"},
      {"0:1", {0, 1, 0, 0}, "uniform"},
  };
  for (const auto& workload : kWorkloads) {
    CAPTURE(workload.name);
    const auto mix = ParseMix(workload.name);
    KVD_REQUIRE_OK(mix);
    for (size_t i = 0; i < kOperations; ++i) {
      CHECK(mix->mix.Share(static_cast<Operation>(i)) == Approx(workload.shares[i]));
      CHECK(mix->mix.Has(static_cast<Operation>(i)) == (workload.shares[i] > 0));
    }
    CHECK(mix->distribution.Text() == workload.distribution);
  }
}

TEST_CASE("Mix: operations come as often as their weights say") {
  const Mix mix({70, 20, 7, 3});
  Random random(9);
  std::vector<uint64_t> counts(kOperations);
  for (int i = 0; i < 1'000'000; ++i) ++counts[static_cast<size_t>(mix.Choose(random))];
  const auto chi = test::ChiSquareOf(counts, {70, 20, 7, 3});
  CHECK(chi.statistic < chi.limit);
  CHECK(mix.Text() == "get 70 %, put 20 %, insert 7 %, rmw 3 %");
}

TEST_CASE("Mix: what is not understood is named, and what is allowed too") {
  for (const char* text :
       {"", "x", "0:0", "95", "95:", ":5", "95:5:1", "-1:5", "1000001:1", "ab"}) {
    CAPTURE(text);
    const auto mix = ParseMix(text);
    KVD_REQUIRE_CODE(mix, kInvalidArgument);
    CHECK(test::MessageOf(mix).starts_with(text));
    CHECK(test::MessageOf(mix).find("READ:WRITE") != std::string::npos);
  }
  CHECK(test::MessageOf(ParseMix("e")).find("scans") != std::string::npos);
}

}  // namespace
}  // namespace kvd::bench
