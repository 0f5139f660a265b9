#include "server/admin/status_page.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/string_view.h"
#include "common/base/units.h"
#include "server/admin/html.h"
#include "server/admin/status_json.h"

namespace kvd {
namespace {

constexpr int kRefreshSeconds = 5;
constexpr int kBarWidth = 1000;       // of the drawing, which the page stretches
constexpr size_t kSessionsMax = 200;  // rows shown

std::string Head(std::string_view title) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\">"
      "<meta http-equiv=\"refresh\" content=\"",
      kRefreshSeconds, "\"><link rel=\"stylesheet\" href=\"/style.css\"><title>", HtmlText(title),
      "</title></head><body>\n");
}

std::string TextOf(const StatisticList& statistics, std::string_view name) {
  const Statistic* row = statistics.Find(name);
  return row == nullptr ? "" : row->ValueText();
}

std::string Duration(uint64_t seconds) {
  const uint64_t days = seconds / 86400;
  return absl::StrCat(
      days == 0 ? "" : absl::StrCat(days, " d "),
      absl::StrFormat("%d:%02d:%02d", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60));
}

// Bytes and counts as people read them; what carries no unit stays a number.
std::string Readable(const Statistic& row) {
  if (row.kind == StatisticKind::kText) return HtmlText(row.text);
  if (absl::EndsWith(ToAbsl(row.name), "_bytes")) return FormatBytes(row.number);
  return row.is_metric() ? Grouped(row.number) : row.ValueText();
}

std::string Tile(std::string_view label, std::string_view value, std::string_view more = {}) {
  return absl::StrCat("<div><dt>", ToAbsl(label), "</dt><dd>", HtmlText(value), "</dd><small>",
                      HtmlText(more), "</small></div>\n");
}

std::string Tiles(const StatisticList& all, const StatusRates& rates) {
  const auto number = [&](std::string_view name) { return Grouped(all.NumberOf(name)); };
  const bool known = rates.seconds > 0;
  std::string html = "<dl>\n";
  absl::StrAppend(
      &html, Tile("Items", number("items"), FormatBytes(all.NumberOf("user_bytes"))),
      Tile("Sessions", number("sessions"),
           absl::StrCat("of ", number("sessions_max"), "; ", number("refused"), " refused so far")),
      Tile("Requests", known ? Grouped(static_cast<uint64_t>(rates.requests)) + "/s" : "...",
           known ? absl::StrFormat("in the last %.0f s", rates.seconds) : "at the next refresh"),
      Tile("Processor", known ? absl::StrFormat("%.0f %%", 100 * rates.processor_seconds) : "...",
           absl::StrCat("of one core; ", number("pollers"), " poller(s), ",
                        TextOf(all, "poll_mode"))),
      Tile("Evicted", number("evicted_items"), absl::StrCat("--evict=", TextOf(all, "evict"))),
      Tile("Refused for room", number("no_space"), "writes"),
      Tile("Pages", TextOf(all, "page_kind"),
           TextOf(all, "page_fallback") == "none" ? "" : TextOf(all, "page_fallback")));
  return html + "</dl>\n";
}

// Of the region, in the order in which they are drawn.
constexpr const char* kUses[] = {"index", "heap_used", "heap_free", "free", "fixed"};

uint64_t BytesOf(const StatisticList& all, std::string_view use) {
  for (const Statistic& row : all.rows()) {
    if (row.metric.name == "kvd_region_bytes" && row.metric.label_value == use) return row.number;
  }
  return 0;
}

// The region as one bar, a part for each use, and the legend below it.
std::string MemoryMap(const StatisticList& all) {
  const double total = static_cast<double>(std::max<uint64_t>(1, all.NumberOf("memory_bytes")));
  std::string bar, legend;
  double at = 0;
  for (const char* use : kUses) {
    const double width = kBarWidth * static_cast<double>(BytesOf(all, use)) / total;
    absl::StrAppendFormat(&bar,
                          "<rect class=\"%s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"40\"/>",
                          use, at, width);
    absl::StrAppendFormat(&legend,
                          "<li><svg width=\"12\" height=\"12\"><rect class=\"%s\" width=\"12\" "
                          "height=\"12\"/></svg> %s <b>%s</b> (%.1f %%)</li>",
                          use, use, FormatBytes(BytesOf(all, use)), 100 * width / kBarWidth);
    at += width;
  }
  return absl::StrCat("<h2>Memory of the region: ", FormatBytes(all.NumberOf("memory_bytes")),
                      "</h2>\n<svg class=\"bar\" role=\"img\" aria-label=\"use of the region\" "
                      "viewBox=\"0 0 ",
                      kBarWidth, " 40\" preserveAspectRatio=\"none\">", bar, "</svg>\n<ul>", legend,
                      "</ul>\n<p>Longest free run: ",
                      FormatBytes(all.NumberOf("largest_free_run_bytes")), "</p>\n");
}

std::string Sessions(const std::vector<AdminSession>& sessions) {
  std::string html = absl::StrCat("<h2>Sessions: ", sessions.size(), "</h2>\n");
  if (sessions.empty()) return html + "<p>Nobody is connected.</p>\n";
  html +=
      "<table><tr><th>id</th><th>name</th><th>transport</th><th>address</th><th>key</th>"
      "<th>role</th><th>since</th></tr>\n";
  for (size_t i = 0; i < std::min(sessions.size(), kSessionsMax); ++i) {
    const AdminSession& s = sessions[i];
    absl::StrAppend(&html, "<tr><td>", s.id);
    for (const std::string& text :
         {s.name, s.transport, s.address, s.key_name, s.role, UtcText(s.since_unix_us)}) {
      absl::StrAppend(&html, "</td><td>", HtmlText(text));
    }
    html += "</td></tr>\n";
  }
  html += "</table>\n";
  if (sessions.size() > kSessionsMax) {
    absl::StrAppend(&html, "<p>and ", sessions.size() - kSessionsMax,
                    " more: <a href=\"/status.json\">/status.json</a></p>\n");
  }
  return html;
}

template <typename Wanted>
std::string Table(std::string_view title, const StatisticList& all, Wanted wanted) {
  std::string rows;
  for (const Statistic& row : all.rows()) {
    if (row.name.empty() || !wanted(row)) continue;
    absl::StrAppend(&rows, "<tr><th>", ToAbsl(row.name), "</th><td>", Readable(row), "</td><td>",
                    HtmlText(row.metric.label.empty() ? row.metric.help : ""), "</td></tr>\n");
  }
  if (rows.empty()) return "";
  return absl::StrCat("<h2>", ToAbsl(title), "</h2>\n<table>", rows, "</table>\n");
}

bool IsRequest(const Statistic& row) { return row.metric.name == "kvd_requests_total"; }
bool IsRdma(const Statistic& row) { return absl::StartsWith(ToAbsl(row.name), "rdma_"); }

uint64_t Requests(const StatisticList& all) {
  uint64_t sum = 0;
  for (const Statistic& row : all.rows()) sum += IsRequest(row) ? row.number : 0;
  return sum;
}

uint64_t ProcessorUs(const StatisticList& all) {
  return all.NumberOf("cpu_user_us") + all.NumberOf("cpu_system_us");
}

}  // namespace

StatusRates RatesBetween(const StatisticList& before, const StatisticList& now, double seconds) {
  const auto per_second = [seconds](uint64_t from, uint64_t to) {
    return to < from ? 0 : static_cast<double>(to - from) / seconds;
  };
  return {.seconds = seconds,
          .requests = per_second(Requests(before), Requests(now)),
          .processor_seconds = per_second(ProcessorUs(before), ProcessorUs(now)) / 1e6};
}

std::string StatusPage(const StatisticList& all, const std::vector<AdminSession>& sessions,
                       const StatusRates& rates) {
  return absl::StrCat(
      Head("kvd"), "<h1>kvd ", HtmlText(TextOf(all, "version")), "</h1>\n<p>commit ",
      HtmlText(TextOf(all, "commit")), ", pid ", all.NumberOf("pid"), ", up ",
      Duration(all.NumberOf("uptime_seconds")), ", serves ", HtmlText(TextOf(all, "transports")),
      " &middot; <a href=\"/metrics\">metrics</a> &middot; <a href=\"/status.json\">JSON</a></p>\n",
      Tiles(all, rates), MemoryMap(all), Sessions(sessions), Table("Requests", all, IsRequest),
      Table("RDMA", all, IsRdma),
      Table("Everything else", all,
            [](const Statistic& row) { return !IsRequest(row) && !IsRdma(row); }),
      "</body></html>\n");
}

std::string NotReadyPage(std::string_view reason) {
  return absl::StrCat(Head("kvd: not ready"), "<h1>kvd is not ready</h1>\n<p>", HtmlText(reason),
                      "</p>\n</body></html>\n");
}

std::string_view StatusStyle() {
  return R"(:root { color-scheme: light dark; }
body { font: 15px/1.4 system-ui, sans-serif; max-width: 70em; margin: 1.5em auto; padding: 0 1em; }
h1 { margin-bottom: 0; }
h2 { font-size: 1.1em; margin: 1.6em 0 .4em; }
dl { display: flex; flex-wrap: wrap; gap: .6em; }
dl > div { border: 1px solid #8886; border-radius: 6px; padding: .5em .9em; min-width: 8em; }
dt, small { color: #777; }
dd { margin: 0; font-size: 1.4em; }
.bar { width: 100%; height: 2.5em; border: 1px solid #8886; }
.index { fill: #3b76c4; }
.heap_used { fill: #d9822b; }
.heap_free { fill: #f0c48f; }
.free { fill: #8883; }
.fixed { fill: #555; }
ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3em 1.5em; }
table { border-collapse: collapse; width: 100%; font-size: .93em; }
th { text-align: left; font-weight: 500; }
th, td { padding: .15em .8em .15em 0; border-bottom: 1px solid #8883; overflow-wrap: anywhere; }
td:last-child { color: #777; }
)";
}

}  // namespace kvd
