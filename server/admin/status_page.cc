#include "server/admin/status_page.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/string_view.h"
#include "common/base/units.h"
#include "server/admin/html.h"
#include "server/admin/status_charts.h"
#include "server/admin/status_json.h"

namespace kvd {
namespace {

constexpr int kRefreshSeconds = 5;    // without JavaScript; with it: status_assets.cc
constexpr size_t kSessionsMax = 200;  // rows shown
constexpr size_t kSlowRequestsMax = 12;

std::string Head(std::string_view title) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<noscript><meta http-equiv=\"refresh\" content=\"",
      kRefreshSeconds,
      "\"></noscript><link rel=\"stylesheet\" href=\"/style.css\">"
      "<script src=\"/live.js\" defer></script><title>",
      HtmlText(title), "</title></head><body>\n<p id=\"silent\" hidden></p>\n<main>\n");
}

std::string TextOf(const StatisticList& statistics, std::string_view name) {
  const Statistic* row = statistics.Find(name);
  return row == nullptr ? "" : row->ValueText();
}

// As git shows it: "1f2e3d4c5b-dirty".
std::string ShortCommit(const std::string& commit) {
  constexpr size_t kDigits = 10, kWhole = 40;
  if (commit.find_first_not_of("0123456789abcdef") < kWhole || commit.size() < kWhole)
    return commit;
  return commit.substr(0, kDigits) + commit.substr(kWhole);
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

std::string Milliseconds(int64_t us) {
  return absl::StrFormat("%.3f", static_cast<double>(us) / 1000);
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
      Tile("Pollers without a processor", number("poller_stalls"),
           absl::StrCat("times of 1 ms or longer; the longest ",
                        Milliseconds(static_cast<int64_t>(all.NumberOf("poller_longest_stall_us"))),
                        " ms")),
      Tile("Evicted", number("evicted_items"), absl::StrCat("--evict=", TextOf(all, "evict"))),
      Tile("Refused for room", number("no_space"), "writes"),
      Tile("Memory left", FormatBytes(all.NumberOf("free_bytes")),
           absl::StrCat("of ", FormatBytes(all.NumberOf("memory_bytes")))),
      Tile("Pages", TextOf(all, "page_kind"),
           TextOf(all, "page_fallback") == "none"
               ? absl::StrCat("locked ", FormatBytes(all.NumberOf("locked_bytes")), ", pinned ",
                              FormatBytes(all.NumberOf("pinned_bytes")))
               : TextOf(all, "page_fallback")));
  return html + "</dl>\n";
}

// A table that a narrow screen scrolls by itself.
std::string Rows(std::string_view head, std::string_view rows) {
  return absl::StrCat("<div class=\"wide\"><table><thead><tr>", ToAbsl(head), "</tr></thead>\n",
                      ToAbsl(rows), "</table></div>\n");
}

// The rest of a row.
void AppendNumbers(const std::vector<std::string>& numbers, std::string& row) {
  for (const std::string& number : numbers) absl::StrAppend(&row, "</td><td class=\"n\">", number);
  row += "</td></tr>\n";
}

// Of sessions that have reported anything.
std::string Reported(const std::vector<AdminSession>& sessions) {
  std::string rows;
  size_t count = 0;
  for (const AdminSession& s : sessions) {
    const ReportedCounts& r = s.reported;
    if (r.gets == 0 && r.reads == 0) continue;
    if (++count > kSessionsMax) break;
    absl::StrAppend(&rows, "<tr><td>", s.id, "</td><td>", HtmlText(s.name));
    AppendNumbers({Grouped(r.gets), Grouped(r.hits), Grouped(r.misses), Grouped(r.reads),
                   FormatBytes(r.read_bytes), Grouped(r.torn_reads), Grouped(r.retries),
                   Grouped(r.fallbacks), Grouped(r.read_errors)},
                  rows);
  }
  if (rows.empty()) return "";
  return absl::StrCat(
      "<h2>What they report of their reading</h2>\n",
      Rows("<th>id</th><th>name</th><th class=\"n\">GETs</th><th class=\"n\">hits</th>"
           "<th class=\"n\">misses</th><th class=\"n\">READs</th><th class=\"n\">fetched</th>"
           "<th class=\"n\">torn</th><th class=\"n\">moved</th><th class=\"n\">asked kvd</th>"
           "<th class=\"n\">READ errors</th>",
           rows),
      "<p>kvd does not see what clients read by themselves: they tell of it every few seconds, and "
      "kvd checks no more of it than that it can be.</p>\n");
}

std::string Sessions(const std::vector<AdminSession>& sessions) {
  std::string html = absl::StrCat("<h2>Sessions: ", sessions.size(), "</h2>\n");
  if (sessions.empty()) return html + "<p>Nobody is connected.</p>\n";
  std::string rows;
  for (size_t i = 0; i < std::min(sessions.size(), kSessionsMax); ++i) {
    const AdminSession& s = sessions[i];
    absl::StrAppend(&rows, "<tr><td>", s.id);
    for (const std::string& text :
         {s.name, s.transport, s.address, s.key_name, s.role, UtcText(s.since_unix_us)}) {
      absl::StrAppend(&rows, "</td><td>", HtmlText(text));
    }
    AppendNumbers({absl::StrCat(s.credits), Grouped(s.requests), Grouped(s.writes),
                   FormatBytes(s.received_bytes), FormatBytes(s.sent_bytes)},
                  rows);
  }
  html += Rows(
      "<th>id</th><th>name</th><th>transport</th><th>address</th><th>key</th><th>role</th>"
      "<th>since</th><th class=\"n\">credits</th><th class=\"n\">requests</th>"
      "<th class=\"n\">writes</th><th class=\"n\">received</th><th class=\"n\">sent</th>",
      rows);
  if (sessions.size() > kSessionsMax) {
    absl::StrAppend(&html, "<p>and ", sessions.size() - kSessionsMax,
                    " more: <a href=\"/status.json\">/status.json</a></p>\n");
  }
  return html;
}

std::string SlowRequests(const std::vector<AdminSlowRequest>& requests) {
  std::string html = absl::StrCat("<h2>Slow requests, of late: ", requests.size(), "</h2>\n");
  if (requests.empty()) return html + "<p>None took as long as --slow_log says.</p>\n";
  std::string rows;
  for (size_t i = 0; i < std::min(requests.size(), kSlowRequestsMax); ++i) {
    const AdminSlowRequest& r = requests[i];
    absl::StrAppend(&rows, "<tr><td>", UtcText(r.at_unix_us), "</td><td class=\"n\">", r.requests,
                    "</td><td>", HtmlText(r.operation), "</td><td>", r.session_id, "</td><td>",
                    HtmlText(r.name));
    for (const uint64_t bytes : {uint64_t{r.key_bytes}, r.value_bytes})
      absl::StrAppend(&rows, "</td><td class=\"n\">", FormatBytes(bytes));
    absl::StrAppend(&rows, "</td><td class=\"n\"><b>", Milliseconds(r.total_us), "</b>");
    for (const int64_t us :
         {r.waiting_us, r.pulling_us, r.evicting_us, r.executing_us, r.stalled_us})
      absl::StrAppend(&rows, "</td><td class=\"n\">", Milliseconds(us));
    absl::StrAppend(&rows, "</td></tr>\n");
  }
  html += Rows(
      "<th>when</th><th "
      "class=\"n\">requests</th><th>operation</th><th>session</th><th>name</th><th "
      "class=\"n\">key</th>"
      "<th class=\"n\">value</th><th class=\"n\">ms</th><th class=\"n\">waiting</th>"
      "<th class=\"n\">pulling</th><th class=\"n\">evicting</th>"
      "<th class=\"n\">executing</th><th class=\"n\">stalled</th>",
      rows);
  if (requests.size() > kSlowRequestsMax) html += "<p>All: <code>kvcli slowlog</code></p>\n";
  return html;
}

// What an RDMA port has counted that is no statistic of kvd's own, without its zeros.
std::string PortErrors(const StatisticList& all) {
  std::string text;
  for (const Statistic& row : all.rows()) {
    if (row.metric.name != "kvd_rdma_port_errors_total" || row.number == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", HtmlText(row.metric.label_value), " <b>",
                    Grouped(row.number), "</b>");
  }
  return text.empty() ? "" : absl::StrCat("<p>Counted by the port itself: ", text, "</p>\n");
}

template <typename Wanted>
std::string Table(std::string_view title, const StatisticList& all, bool open, Wanted wanted) {
  std::string rows;
  for (const Statistic& row : all.rows()) {
    if (row.name.empty() || !wanted(row)) continue;
    absl::StrAppend(&rows, "<tr><th>", ToAbsl(row.name), "</th><td class=\"n\">", Readable(row),
                    "</td><td>", HtmlText(row.metric.label.empty() ? row.metric.help : ""),
                    "</td></tr>\n");
  }
  if (rows.empty()) return "";
  return absl::StrCat("<details id=\"", HtmlText(title), "\"", open ? " open" : "", "><summary>",
                      ToAbsl(title), "</summary>\n<div class=\"wide\"><table>", rows,
                      "</table></div></details>\n");
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
                       const std::vector<AdminSlowRequest>& slow_requests,
                       const StatusRates& rates) {
  const auto is_rest = [](const Statistic& row) {
    return !IsRequest(row) && !IsRdma(row) && !absl::StartsWith(ToAbsl(row.name), "time_");
  };
  return absl::StrCat(
      Head("kvd"), "<h1>kvd ", HtmlText(TextOf(all, "version")), "</h1>\n<p>commit ",
      HtmlText(ShortCommit(TextOf(all, "commit"))), ", pid ", all.NumberOf("pid"), ", up ",
      Duration(all.NumberOf("uptime_seconds")), ", serves ", HtmlText(TextOf(all, "transports")),
      " &middot; <a href=\"/metrics\">metrics</a> &middot; <a href=\"/status.json\">JSON</a></p>\n",
      Tiles(all, rates), MemoryMap(all), SizeTable(all), RequestTimesChart(all),
      SlowRequests(slow_requests), Sessions(sessions), Reported(sessions),
      Table("RDMA", all, /*open=*/true, IsRdma), PortErrors(all),
      Table("Requests", all, /*open=*/false, IsRequest),
      Table("Everything else", all, /*open=*/false, is_rest), "</main></body></html>\n");
}

std::string NotReadyPage(std::string_view reason) {
  return absl::StrCat(Head("kvd: not ready"), "<h1>kvd is not ready</h1>\n<p>", HtmlText(reason),
                      "</p>\n</main></body></html>\n");
}

}  // namespace kvd
