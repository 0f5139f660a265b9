#include "common/base/latency_histogram.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/random.h"
#include "tests/support/test.h"

namespace kvd {
namespace {

// Times as they are: from tens of nanoseconds to seconds, most of them short.
std::vector<int64_t> SomeTimes(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<int64_t> times;
  for (size_t i = 0; i < count; ++i) {
    times.push_back(static_cast<int64_t>(std::exp(3 + 18 * std::pow(random.NextDouble(), 3))));
  }
  return times;
}

uint64_t Exact(const std::vector<int64_t>& sorted, double part) {
  const auto rank =
      static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size()) - 1e-6));
  return static_cast<uint64_t>(sorted[std::max<size_t>(rank, 1) - 1]);
}

TEST_CASE("LatencyHistogram: percentiles are the exact ones, rounded up by less than 0.8 percent") {
  for (const uint64_t seed : {1, 2, 3}) {
    std::vector<int64_t> times = SomeTimes(seed, 100'000);
    const auto histogram = std::make_unique<LatencyHistogram>();
    for (const int64_t ns : times) histogram->Add(ns);
    std::sort(times.begin(), times.end());
    for (const double part :
         {0.0, 0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999, 1.0}) {
      CAPTURE(seed, part);
      const uint64_t exact = Exact(times, part);
      const uint64_t reported = histogram->Percentile(part);
      CHECK(reported >= exact);
      CHECK(static_cast<double>(reported) <= static_cast<double>(exact) * (1 + 1.0 / 128));
    }
    CHECK(histogram->min() == static_cast<uint64_t>(times.front()));
    CHECK(histogram->max() == static_cast<uint64_t>(times.back()));
    double sum = 0;
    for (const int64_t ns : times) sum += static_cast<double>(ns);
    const double mean = sum / static_cast<double>(times.size());
    double squares = 0;
    for (const int64_t ns : times)
      squares += (static_cast<double>(ns) - mean) * (static_cast<double>(ns) - mean);
    CHECK(histogram->Mean() == Approx(mean));
    CHECK(histogram->StandardDeviation() ==
          Approx(std::sqrt(squares / static_cast<double>(times.size()))));
  }
}

TEST_CASE("LatencyHistogram: below 256 ns nothing is rounded") {
  const auto histogram = std::make_unique<LatencyHistogram>();
  for (int64_t ns = 0; ns < 256; ++ns) histogram->Add(ns);
  for (int64_t ns = 0; ns < 256; ++ns) {
    REQUIRE(histogram->Percentile(static_cast<double>(ns + 1) / 256) == static_cast<uint64_t>(ns));
  }
}

TEST_CASE("LatencyHistogram: every limit of a cell counts in it, and the next value does not") {
  for (uint64_t value = 1; value < uint64_t{1} << 40; value += 1 + value / 3) {
    const uint64_t limit = LatencyHistogram::RoundedUp(value);
    REQUIRE(limit >= value);
    REQUIRE(LatencyHistogram::RoundedUp(limit) == limit);
    REQUIRE(LatencyHistogram::RoundedUp(limit + 1) > limit);
  }
}

TEST_CASE("LatencyHistogram: merged counts as if everything had been added to one") {
  const auto all = std::make_unique<LatencyHistogram>();
  const auto one = std::make_unique<LatencyHistogram>();
  const auto other = std::make_unique<LatencyHistogram>();
  for (const int64_t ns : SomeTimes(1, 1000)) one->Add(ns), all->Add(ns);
  for (const int64_t ns : SomeTimes(2, 5000)) other->Add(ns), all->Add(ns);
  one->Merge(*other);
  one->Merge(LatencyHistogram());
  CHECK(one->count() == 6000);
  CHECK(one->min() == all->min());
  CHECK(one->max() == all->max());
  CHECK(one->Mean() == Approx(all->Mean()));
  for (const double part : {0.1, 0.5, 0.99}) CHECK(one->Percentile(part) == all->Percentile(part));
  one->Clear();
  CHECK(one->count() == 0);
  CHECK(one->Percentile(0.5) == 0);
}

TEST_CASE(
    "LatencyHistogram: what is beyond its range keeps its maximum, and what is negative is 0") {
  const auto histogram = std::make_unique<LatencyHistogram>();
  histogram->Add(-5);
  histogram->Add(int64_t{1} << 50);
  CHECK(histogram->min() == 0);
  CHECK(histogram->max() == uint64_t{1} << 50);
  CHECK(histogram->Percentile(0.5) == 0);
  CHECK(histogram->Percentile(1) == uint64_t{1} << 50);
}

TEST_CASE("LatencyHistogram: a copy has all of it, and a cleared one begins anew") {
  const auto histogram = std::make_unique<LatencyHistogram>();
  for (const int64_t ns : {7, 300, 70000}) histogram->Add(ns);
  const auto copy = std::make_unique<LatencyHistogram>(*histogram);
  histogram->Clear();
  CHECK(histogram->count() == 0);
  CHECK(histogram->max() == 0);
  CHECK(histogram->Percentile(1) == 0);
  CHECK(copy->count() == 3);
  CHECK(copy->min() == 7);
  CHECK(copy->max() == 70000);
  CHECK(copy->sum() == 70307);
  histogram->Add(5000);
  CHECK(histogram->min() == 5000);
  *copy = *histogram;
  CHECK(copy->count() == 1);
  CHECK(copy->min() == 5000);
  CHECK(copy->StandardDeviation() == 0);
}

TEST_CASE("LatencyHistogram: one that is being written can be copied") {
  const auto histogram = std::make_unique<LatencyHistogram>();
  std::atomic<bool> enough{false};
  std::thread writer([&] {
    for (int64_t i = 0; !enough.load(); ++i) histogram->Add(1000 + i % 100000);
  });
  const auto copy = std::make_unique<LatencyHistogram>();
  uint64_t before = 0;
  while (before < 100000) {
    *copy = *histogram;
    REQUIRE(copy->count() >= before);
    REQUIRE(copy->CountUpTo(UINT64_MAX) == copy->count());
    before = copy->count();
  }
  enough = true;
  writer.join();
}

}  // namespace
}  // namespace kvd
