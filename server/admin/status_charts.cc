#include "server/admin/status_charts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/string_view.h"
#include "common/base/units.h"
#include "server/admin/html.h"

namespace kvd {
namespace {

constexpr int kBarWidth = 1000;  // of the drawing, which the page stretches

// Of the region, in the order in which they are drawn, and what people call them.
constexpr struct {
  const char* use;
  const char* name;
} kUses[] = {{"index", "index"},
             {"heap_used", "items"},
             {"heap_free", "room in pages of items"},
             {"free", "free"},
             {"fixed", "fixed"}};

uint64_t BytesOf(const StatisticList& all, std::string_view use) {
  for (const Statistic& row : all.rows()) {
    if (row.metric.name == "kvd_region_bytes" && row.metric.label_value == use) return row.number;
  }
  return 0;
}

std::string TimeText(uint64_t ns) {
  if (ns < 1'000) return absl::StrCat(ns, " ns");
  if (ns < 1'000'000) return absl::StrFormat("%.3g &micro;s", static_cast<double>(ns) / 1e3);
  if (ns < 1'000'000'000) return absl::StrFormat("%.3g ms", static_cast<double>(ns) / 1e6);
  return absl::StrFormat("%.3g s", static_cast<double>(ns) / 1e9);
}

// Counts of each range by itself, the last one being above all limits.
std::vector<uint64_t> CountsOf(const StatisticHistogram& times) {
  std::vector<uint64_t> counts;
  uint64_t below = 0;
  for (const StatisticHistogram::Cell& cell : times.cells) {
    counts.push_back(cell.count - below);
    below = cell.count;
  }
  counts.push_back(times.count - below);
  return counts;
}

// Heights are by the logarithm: one slow request among a million is to be seen.
std::string Bars(const StatisticHistogram& times) {
  const std::vector<uint64_t> counts = CountsOf(times);
  const double highest =
      std::log2(1.0 + static_cast<double>(*std::max_element(counts.begin(), counts.end())));
  std::string svg = absl::StrFormat(
      "<svg class=\"times\" role=\"img\" aria-label=\"times\" viewBox=\"0 0 %d 100\" "
      "preserveAspectRatio=\"none\">",
      10 * counts.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    const double height =
        counts[i] == 0 ? 0 : std::max(4.0, 100 * std::log2(1.0 + counts[i]) / highest);
    const std::string range = i < times.cells.size()
                                  ? absl::StrCat("up to ", TimeText(times.cells[i].limit.ns))
                                  : absl::StrCat("over ", TimeText(times.cells.back().limit.ns));
    absl::StrAppendFormat(&svg,
                          "<rect class=\"time\" x=\"%d\" y=\"%.1f\" width=\"9\" height=\"%.1f\">"
                          "<title>%s: %s</title></rect>",
                          10 * i, 100 - height, height, range, Grouped(counts[i]));
  }
  return svg + "</svg>";
}

std::string Percentile(const StatisticList& all, std::string_view operation,
                       std::string_view which) {
  const std::string name = absl::StrCat("time_", ToAbsl(operation), "_", ToAbsl(which), "_ns");
  return TimeText(all.NumberOf(name));
}

}  // namespace

std::string MemoryMap(const StatisticList& all) {
  const double total = static_cast<double>(std::max<uint64_t>(1, all.NumberOf("memory_bytes")));
  std::string bar, legend;
  double at = 0;
  for (const auto& [use, name] : kUses) {
    const double width = kBarWidth * static_cast<double>(BytesOf(all, use)) / total;
    absl::StrAppendFormat(&bar,
                          "<rect class=\"%s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"40\"/>",
                          use, at, width);
    absl::StrAppendFormat(&legend,
                          "<li><svg width=\"12\" height=\"12\"><rect class=\"%s\" width=\"12\" "
                          "height=\"12\"/></svg> %s <b>%s</b> (%.1f %%)</li>",
                          use, name, FormatBytes(BytesOf(all, use)), 100 * width / kBarWidth);
    at += width;
  }
  return absl::StrCat("<h2>Memory of the region: ", FormatBytes(all.NumberOf("memory_bytes")),
                      "</h2>\n<svg class=\"bar\" role=\"img\" aria-label=\"use of the region\" "
                      "viewBox=\"0 0 ",
                      kBarWidth, " 40\" preserveAspectRatio=\"none\">", bar, "</svg>\n<ul>", legend,
                      "</ul>\n<p>Longest free run: ",
                      FormatBytes(all.NumberOf("largest_free_run_bytes")), "</p>\n");
}

std::string SizeTable(const StatisticList& all) {
  std::string rows;
  uint64_t from = 0;
  for (const Statistic& row : all.rows()) {
    if (row.metric.name != "kvd_heap_held_bytes") continue;
    uint64_t used = 0;
    for (const Statistic& other : all.rows()) {
      if (other.metric.name == "kvd_heap_occupied_bytes" &&
          other.metric.label_value == row.metric.label_value)
        used = other.number;
    }
    uint64_t to = 0;
    const bool last = !absl::SimpleAtoi(ToAbsl(row.metric.label_value), &to);
    const std::string sizes =
        last ? absl::StrCat("over ", FormatBytes(from)) : absl::StrCat("up to ", FormatBytes(to));
    from = to;
    if (row.number == 0) continue;
    const double part = 100 * static_cast<double>(used) / static_cast<double>(row.number);
    absl::StrAppendFormat(
        &rows,
        "<tr><th>%s</th><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>"
        "<td class=\"n\">%.0f %%</td><td class=\"chart\"><svg class=\"part\" role=\"img\" "
        "aria-label=\"used\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\"><rect "
        "class=\"heap_free\" width=\"100\" height=\"10\"/><rect class=\"heap_used\" width=\"%.2f\" "
        "height=\"10\"/></svg></td></tr>\n",
        sizes, FormatBytes(row.number), FormatBytes(used),
        FormatBytes(row.number - std::min(used, row.number)), part, part);
  }
  if (rows.empty()) return "";
  return absl::StrCat(
      "<h2>Items outside of buckets, by size</h2>\n<div class=\"wide\"><table><thead><tr>"
      "<th>items of</th><th class=\"n\">pages</th><th class=\"n\">used</th>"
      "<th class=\"n\">room</th><th class=\"n\">full</th><th class=\"chart\"></th></tr></thead>\n",
      rows, "</table></div>\n");
}

std::string RequestTimesChart(const StatisticList& all) {
  std::string rows;
  for (const Statistic& row : all.rows()) {
    if (row.kind != StatisticKind::kHistogram || row.histogram.count == 0) continue;
    const std::string_view operation = row.metric.label_value;
    absl::StrAppend(&rows, "<tr><th>", HtmlText(operation), "</th><td class=\"n\">",
                    Grouped(row.histogram.count));
    for (const char* which : {"p50", "p99", "max"})
      absl::StrAppend(&rows, "</td><td class=\"n\">", Percentile(all, operation, which));
    absl::StrAppend(&rows, "</td><td class=\"chart\">", Bars(row.histogram), "</td></tr>\n");
  }
  if (rows.empty()) return "";
  return absl::StrCat(
      "<h2>How long requests took in kvd</h2>\n<div class=\"wide\"><table><thead><tr>"
      "<th>operation</th><th class=\"n\">requests</th><th class=\"n\">half</th>"
      "<th class=\"n\">99 %</th><th class=\"n\">longest</th>"
      "<th class=\"chart\">500 ns ... 0.5 s, height by the logarithm</th></tr></thead>\n",
      rows,
      "</table></div>\n<p>From when kvd took the request to when its reply was posted, since "
      "it started. GETs that clients do by themselves are not among them.</p>\n");
}

}  // namespace kvd
