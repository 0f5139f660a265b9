#include "server/admin/metrics_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/string_view.h"

namespace kvd {
namespace {

constexpr char kOpenMetricsType[] = "application/openmetrics-text";

// All rows of one name.
struct Family {
  std::string name;
  std::vector<const Statistic*> rows;
};

std::vector<Family> FamiliesOf(const StatisticList& statistics) {
  std::vector<Family> families;
  for (const Statistic& row : statistics.rows()) {
    if (!row.is_metric()) continue;
    std::string name = row.MetricName();
    const auto known = std::find_if(families.begin(), families.end(),
                                    [&](const Family& family) { return family.name == name; });
    if (known != families.end()) {
      known->rows.push_back(&row);
    } else {
      families.push_back({std::move(name), {&row}});
    }
  }
  return families;
}

// In a label's value; in a help text the quotation marks stay as they are, but ours have none.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
    } else {
      if (c == '\\' || c == '"') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

std::string Label(std::string_view name, std::string_view value) {
  return absl::StrCat(ToAbsl(name), "=\"", Escaped(value), "\"");
}

std::string Value(const Statistic& row) {
  if (!row.metric.is_microseconds) return std::to_string(row.number);
  return absl::StrFormat("%d.%06d", row.number / 1'000'000, row.number % 1'000'000);
}

std::string Seconds(uint64_t ns) {
  return absl::StrFormat("%d.%09d", ns / 1'000'000'000, ns % 1'000'000'000);
}

std::string WithoutSuffix(const std::string& name, std::string_view suffix) {
  return absl::EndsWith(name, ToAbsl(suffix)) ? name.substr(0, name.size() - suffix.size()) : name;
}

void AppendHead(const Family& family, MetricsFormat format, std::string& text) {
  const StatisticKind kind = family.rows.front()->kind;
  std::string name = family.name;
  std::string_view type = kind == StatisticKind::kCounter     ? "counter"
                          : kind == StatisticKind::kHistogram ? "histogram"
                                                              : "gauge";
  if (format == MetricsFormat::kOpenMetrics) {
    // There a family's name has no suffix of its type.
    if (kind == StatisticKind::kCounter) name = WithoutSuffix(name, "_total");
    if (kind == StatisticKind::kText) {
      name = WithoutSuffix(name, "_info");
      type = "info";
    }
  }
  const auto with_help =
      std::find_if(family.rows.begin(), family.rows.end(),
                   [](const Statistic* row) { return !row->metric.help.empty(); });
  const std::string_view help = with_help == family.rows.end() ? "" : (*with_help)->metric.help;
  absl::StrAppend(&text, "# HELP ", name, " ", Escaped(help), "\n# TYPE ", name, " ", ToAbsl(type),
                  "\n");
  if (format != MetricsFormat::kOpenMetrics) return;
  for (const char* unit : {"bytes", "seconds"}) {
    if (absl::EndsWith(name, absl::StrCat("_", unit))) {
      absl::StrAppend(&text, "# UNIT ", name, " ", unit, "\n");
    }
  }
}

// Texts of one family are the labels of one sample.
void AppendTexts(const Family& family, std::string& text) {
  std::string labels;
  for (const Statistic* row : family.rows) {
    absl::StrAppend(&labels, labels.empty() ? "" : ",", Label(row->metric.label, row->text));
  }
  absl::StrAppend(&text, family.name, "{", labels, "} 1\n");
}

void AppendNumbers(const Family& family, std::string& text) {
  for (const Statistic* row : family.rows) {
    const Metric& metric = row->metric;
    absl::StrAppend(
        &text, family.name,
        metric.label.empty() ? "" : absl::StrCat("{", Label(metric.label, metric.label_value), "}"),
        " ", Value(*row), "\n");
  }
}

// "kvd_x_bucket{operation="put",le="0.001"} 7" for each limit and for all, the sum and the count.
void AppendHistograms(const Family& family, std::string& text) {
  for (const Statistic* row : family.rows) {
    const StatisticHistogram& times = row->histogram;
    const std::string label =
        row->metric.label.empty() ? "" : Label(row->metric.label, row->metric.label_value);
    const std::string_view comma = label.empty() ? "" : ",";
    const std::string braced = label.empty() ? "" : absl::StrCat("{", label, "}");
    const auto bucket = [&](std::string_view limit, uint64_t count) {
      absl::StrAppend(&text, family.name, "_bucket{", label, ToAbsl(comma), "le=\"", ToAbsl(limit),
                      "\"} ", count, "\n");
    };
    for (const StatisticHistogram::Cell& cell : times.cells) bucket(cell.limit.seconds, cell.count);
    bucket("+Inf", times.count);
    absl::StrAppend(&text, family.name, "_sum", braced, " ", Seconds(times.sum_ns), "\n",
                    family.name, "_count", braced, " ", times.count, "\n");
  }
}

// "q=0", "q = 0.0": what a client does not want at all.
bool IsUnwanted(absl::string_view parameter) {
  const std::vector<std::string> parts = absl::StrSplit(parameter, absl::MaxSplits('=', 1));
  double weight = 1;
  return parts.size() == 2 && absl::StripAsciiWhitespace(parts[0]) == "q" &&
         absl::SimpleAtod(absl::StripAsciiWhitespace(parts[1]), &weight) && weight <= 0;
}

}  // namespace

MetricsFormat MetricsFormatFor(std::string_view accept) {
  for (const absl::string_view range : absl::StrSplit(ToAbsl(accept), ',')) {
    const std::vector<std::string> parts = absl::StrSplit(range, ';');
    if (absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts[0]), kOpenMetricsType) &&
        std::none_of(parts.begin() + 1, parts.end(), IsUnwanted)) {
      return MetricsFormat::kOpenMetrics;
    }
  }
  return MetricsFormat::kPrometheus;
}

std::string_view ContentTypeOf(MetricsFormat format) {
  return format == MetricsFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string MetricsText(const StatisticList& statistics, MetricsFormat format) {
  std::string text;
  for (const Family& family : FamiliesOf(statistics)) {
    AppendHead(family, format, text);
    if (family.rows.front()->kind == StatisticKind::kText) {
      AppendTexts(family, text);
    } else if (family.rows.front()->kind == StatisticKind::kHistogram) {
      AppendHistograms(family, text);
    } else {
      AppendNumbers(family, text);
    }
  }
  if (format == MetricsFormat::kOpenMetrics) text += "# EOF\n";
  return text;
}

}  // namespace kvd
