#include "server/operations/request_times.h"

#include <memory>
#include <vector>

#include "tests/support/test.h"

namespace kvd::test {

TEST_CASE("Request times: of all pollers together, in cells of known limits and in percentiles") {
  const auto first = std::make_unique<RequestTimes>(), second = std::make_unique<RequestTimes>();
  const auto add = [](RequestTimes& times, Opcode opcode, int64_t ns) {
    times.Add(static_cast<uint8_t>(opcode), ns);
  };
  for (int i = 0; i < 98; ++i) add(*first, Opcode::kPut, 900);
  add(*second, Opcode::kPut, 2'000'000);
  add(*second, Opcode::kPut, 700'000'000);
  add(*second, Opcode::kGet, 1);
  StatisticList list;
  const std::vector<const RequestTimes*> both = {first.get(), second.get()};
  AddRequestTimes(both, list);
  CHECK(list.NumberOf("time_put_p50_ns") == LatencyHistogram::RoundedUp(900));
  CHECK(list.NumberOf("time_put_p99_ns") == LatencyHistogram::RoundedUp(2'000'000));
  CHECK(list.NumberOf("time_put_max_ns") == 700'000'000);
  CHECK(list.NumberOf("time_other_max_ns") == 1);
  CHECK(list.NumberOf("time_delete_max_ns") == 0);
  size_t histograms = 0;
  for (const Statistic& row : list.rows()) {
    if (row.kind != StatisticKind::kHistogram) continue;
    ++histograms;
    const StatisticHistogram& times = row.histogram;
    REQUIRE(times.cells.size() < 20);
    uint64_t before = 0, limit = 0;
    for (const auto& cell : times.cells) {
      CHECK(cell.count >= before);
      CHECK(cell.limit.ns > limit);
      CHECK(std::stod(std::string(cell.limit.seconds)) * 1e9 == Approx(cell.limit.ns));
      before = cell.count;
      limit = cell.limit.ns;
    }
    if (row.metric.label_value != "put") continue;
    CHECK(times.count == 100);
    CHECK(times.sum_ns == 98 * 900 + 702'000'000);
    CHECK(times.cells[0].count == 0);
    CHECK(times.cells[1].count == 98);      // 1 us
    CHECK(times.cells.back().count == 99);  // 0.5 s
  }
  CHECK(histograms == kRequestKinds);
}

TEST_CASE("Request times: every opcode has a kind, and only writes have one of their own") {
  for (int opcode = 1; opcode <= kOpcodeLast; ++opcode) {
    RequestTimes times;
    times.Add(static_cast<uint8_t>(opcode), 5);
    size_t counted = 0;
    for (size_t kind = 0; kind < kRequestKinds; ++kind)
      counted += times.of(static_cast<RequestKind>(kind)).max() == 5 ? 1 : 0;
    CHECK(counted == 1);
  }
  RequestTimes times;
  times.Add(static_cast<uint8_t>(Opcode::kGet), 5);
  CHECK(times.of(RequestKind::kOther).max() == 5);
}

}  // namespace kvd::test
