// Numbers and words that say how a kvd is, each with its name in `kvcli stat` and as a metric: the
// one list from which the statistics text, the metrics and the status pages are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvd {

enum class StatisticKind : uint8_t {
  kGauge,    // a number that goes up and down
  kCounter,  // a number that only grows, from 0 at the start
  kText,
  kHistogram,  // of times; a metric only
};

// An upper limit of a cell of a histogram, and how a metric says it in seconds: a literal, in the
// form that Go's %g gives it, which Prometheus compares as text.
struct HistogramLimit {
  uint64_t ns = 0;
  std::string_view seconds;
};

struct StatisticHistogram {
  struct Cell {
    HistogramLimit limit;
    uint64_t count = 0;  // of all times up to the limit
  };
  std::vector<Cell> cells;  // the smallest limit first
  uint64_t count = 0;       // of all
  uint64_t sum_ns = 0;
};

// How a statistic is shown as a metric. The views are of string literals.
struct Metric {
  // Of the family; empty: "kvd_" and the statistic's name, with "_total" behind a counter's. A text
  // that is a metric is a label of a family "..._info" whose value is 1.
  std::string_view name = {};
  // One sentence. Of a family's rows the first that has one speaks for all. Empty and no name: the
  // statistic is no metric.
  std::string_view help = {};
  std::string_view label = {};  // empty: none
  std::string_view label_value = {};
  // The statistic counts microseconds; metrics are in seconds.
  bool is_microseconds = false;
};

struct Statistic {
  std::string_view name;  // empty: a metric only
  StatisticKind kind = StatisticKind::kGauge;
  uint64_t number = 0;
  std::string text;                   // kText only
  StatisticHistogram histogram = {};  // kHistogram only
  Metric metric;

  std::string ValueText() const {
    return kind == StatisticKind::kText ? text : std::to_string(number);
  }
  bool is_metric() const { return !metric.name.empty() || !metric.help.empty(); }
  std::string MetricName() const;
};

class StatisticList {
 public:
  void Gauge(std::string_view name, uint64_t value, Metric metric = {}) {
    rows_.push_back({name, StatisticKind::kGauge, value, {}, {}, metric});
  }
  void Counter(std::string_view name, uint64_t value, Metric metric = {}) {
    rows_.push_back({name, StatisticKind::kCounter, value, {}, {}, metric});
  }
  void Text(std::string_view name, std::string_view value, Metric metric = {}) {
    rows_.push_back({name, StatisticKind::kText, 0, std::string(value), {}, metric});
  }
  void Histogram(StatisticHistogram histogram, Metric metric) {
    rows_.push_back({{}, StatisticKind::kHistogram, 0, {}, std::move(histogram), metric});
  }

  void Append(const StatisticList& other) {
    rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end());
  }

  const std::vector<Statistic>& rows() const { return rows_; }
  // Null: there is none of that name.
  const Statistic* Find(std::string_view name) const;
  // 0 if there is none.
  uint64_t NumberOf(std::string_view name) const;

  // The statistics, one "name value" a line.
  std::string Lines() const;

 private:
  std::vector<Statistic> rows_;
};

}  // namespace kvd
