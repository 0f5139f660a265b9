#include "server/admin/admin_pages.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/test.h"

namespace kvd::test {
namespace {

StatisticList SomeStatistics() {
  StatisticList list;
  list.Text("version", "1.2", {.name = "kvd_build_info", .help = "Which.", .label = "version"});
  list.Gauge("incarnation", uint64_t{1} << 60);
  list.Gauge("memory_bytes", 1000);
  list.Gauge("free_bytes", 250,
             {.name = "kvd_region_bytes", .help = "Use.", .label = "use", .label_value = "free"});
  list.Gauge("items", 1234567, {.help = "Items."});
  return list;
}

AdminSource SourceOf(std::vector<AdminSession> sessions = {}) {
  return {.statistics = SomeStatistics, .sessions = [sessions] { return sessions; }};
}

AdminReply Get(AdminPages& pages, std::string_view path) {
  return pages.Answer({.method = "GET", .path = path, .accept = {}, .host = {}});
}

}  // namespace

TEST_CASE("Admin pages: ready only while kvd serves, alive all the time, and the reason is said") {
  AdminPages pages({.reason = "kvd is starting"});
  CHECK(Get(pages, "/livez").status == 200);
  CHECK(Get(pages, "/livez").body == "ok\n");
  CHECK(Get(pages, "/metrics").status == 200);
  CHECK(Get(pages, "/metrics").body ==
        "# HELP kvd_ready 1 while kvd serves; 0 while it starts or ends.\n"
        "# TYPE kvd_ready gauge\nkvd_ready 0\n");
  for (const char* path : {"/readyz", "/status.json", "/"}) {
    CAPTURE(path);
    CHECK(Get(pages, path).status == 503);
    CHECK_THAT(Get(pages, path).body, Catch::Contains("kvd is starting"));
  }
  pages.SetServing(SourceOf());
  for (const char* path :
       {"/livez", "/readyz", "/metrics", "/status.json", "/", "/style.css", "/live.js"}) {
    CAPTURE(path);
    CHECK(Get(pages, path).status == 200);
  }
  CHECK_THAT(Get(pages, "/metrics").body, Catch::Contains("\nkvd_ready 1\n"));
  pages.SetNotServing("kvd is <shutting> down");
  CHECK_THAT(Get(pages, "/metrics").body, Catch::Contains("\nkvd_ready 0\n"));
  CHECK(Get(pages, "/livez").status == 200);
  CHECK(Get(pages, "/readyz").status == 503);
  CHECK(Get(pages, "/readyz").body == "not ready: kvd is <shutting> down\n");
  CHECK_THAT(Get(pages, "/").body, Catch::Contains("kvd is &lt;shutting&gt; down"));
}

TEST_CASE("Admin pages: only GET and HEAD, and only what there is") {
  AdminPages pages({});
  pages.SetServing(SourceOf());
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", ""}) {
    CAPTURE(method);
    const AdminReply reply =
        pages.Answer({.method = method, .path = "/metrics", .accept = {}, .host = {}});
    CHECK(reply.status == 405);
    CHECK(reply.allows_only_get);
  }
  CHECK(pages.Answer({.method = "HEAD", .path = "/metrics", .accept = {}, .host = {}}).status ==
        200);
  for (const char* path : {"", "/metrics/", "/metricsx", "//", "/../etc/passwd", "/Livez"}) {
    CAPTURE(path);
    CHECK(Get(pages, path).status == 404);
  }
}

TEST_CASE(
    "Admin pages: on a loopback address nobody is answered who asks for another host by name") {
  AdminPages pages({});
  AdminPages open_pages({.reason = {}, .only_this_host = false});
  const auto status_of = [](AdminPages& asked, std::string_view host) {
    return asked.Answer({.method = "GET", .path = "/livez", .accept = {}, .host = host}).status;
  };
  for (const char* host : {"", "localhost", "localhost:7712", "LocalHost:", "LOCALHOST",
                           "127.0.0.1:1", "10.0.0.1", "[::1]", "[::1]:80", "[2001:DB8::1]:80"}) {
    CAPTURE(host);
    CHECK(status_of(pages, host) == 200);
  }
  for (const char* host : {"evil.example:7712", "localhost.evil.example", "127.0.0.1.evil.example",
                           "[evil.example", "[evil.example]", "[::1", "[::1]evil.example", "[]",
                           "localhost:evil", "1.2.3", ":80", "::1"}) {
    CAPTURE(host);
    CHECK(status_of(pages, host) == 421);
    CHECK(status_of(open_pages, host) == 200);
  }
}

TEST_CASE("Admin pages: what a client calls itself does nothing to the page and to the JSON") {
  const std::string evil = "<script>alert('\"&')</script>\xff\n\x1b\x7f\xc2\x9b";
  AdminPages pages({});
  pages.SetServing(SourceOf({{.id = 7,
                              .name = evil,
                              .transport = "shm",
                              .address = "/run/kvd.sock",
                              .key_name = "",
                              .role = "read-write",
                              .since_unix_us = 1'000'000'000'000'000,
                              .credits = 16,
                              .requests = 1'234,
                              .writes = 1'000,
                              .received_bytes = 4 << 20,
                              .sent_bytes = 2048,
                              .reported = {.gets = 5'000,
                                           .hits = 4'000,
                                           .misses = 77,
                                           .reads = 6'000,
                                           .read_bytes = uint64_t{1} << 60,
                                           .torn_reads = 8,
                                           .retries = 9,
                                           .fallbacks = 10,
                                           .read_errors = 11}}}));
  const std::string page = Get(pages, "/").body;
  CHECK_THAT(page, !Catch::Contains("<script>"));
  CHECK_THAT(page, Catch::Contains(
                       "&lt;script&gt;alert(&#39;&quot;&amp;&#39;)&lt;/script&gt;"
                       "\\xff\\x0a\\x1b\\x7f\\xc2\\x9b</td><td>shm</td><td>/run/kvd.sock</td>"));
  CHECK_THAT(page, Catch::Contains("2001-09-09T01:46:40Z</td><td class=\"n\">16</td>"
                                   "<td class=\"n\">1,234</td><td class=\"n\">1,000</td>"
                                   "<td class=\"n\">4 MiB</td><td class=\"n\">2 KiB</td></tr>"));
  CHECK_THAT(
      page,
      Catch::Contains("&lt;/script&gt;\\xff\\x0a\\x1b\\x7f\\xc2\\x9b</td><td class=\"n\">5,000</td>"
                      "<td class=\"n\">4,000</td><td class=\"n\">77</td>"
                      "<td class=\"n\">6,000</td><td class=\"n\">1048576 TiB</td>"
                      "<td class=\"n\">8</td><td class=\"n\">9</td>"
                      "<td class=\"n\">10</td><td class=\"n\">11</td></tr>"));
  const std::string status = Get(pages, "/status.json").body;
  const auto json = nlohmann::json::parse(status);
  const auto& session = json["sessions"][0];
  CHECK(session["name"] == "<script>alert('\"&')</script>\xef\xbf\xbd\n\x1b\x7f\xc2\x9b");
  CHECK(std::all_of(status.begin(), status.end(),
                    [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  CHECK(session["key"].is_null());
  CHECK(session["role"] == "read-write");
  CHECK(session["since"] == "2001-09-09T01:46:40Z");
  CHECK(session["requests"] == 1'234);
  CHECK(session["sent_bytes"] == 2048);
  CHECK(session["reported_hits"] == 4'000);
  CHECK(session["reported_read_bytes"] == "1152921504606846976");
  CHECK(session["reported_read_errors"] == 11);
  CHECK(json["statistics"]["items"] == 1234567);
  CHECK(json["statistics"]["incarnation"] == "1152921504606846976");
  CHECK(json["statistics"]["version"] == "1.2");
}

TEST_CASE("Admin pages: the page loads only what is its own, refreshes itself and draws memory") {
  AdminPages pages({});
  pages.SetServing(SourceOf());
  const std::string page = Get(pages, "/").body;
  CHECK_THAT(page, Catch::Contains("<noscript><meta http-equiv=\"refresh\""));
  CHECK_THAT(page, Catch::Contains("<script src=\"/live.js\" defer></script>"));
  CHECK_THAT(page, Catch::Contains("1,234,567"));
  CHECK_THAT(page, Catch::Contains("<rect class=\"free\" x=\"0.00\" y=\"0\" width=\"250.00\""));
  for (const char* text : {"http://", "https://", "style=", "<script>", "onload", "url("}) {
    CAPTURE(text);
    CHECK_THAT(page, !Catch::Contains(text));
    CHECK_THAT(Get(pages, "/style.css").body, !Catch::Contains(text));
    CHECK_THAT(Get(pages, "/live.js").body, !Catch::Contains(text));
  }
  CHECK(Get(pages, "/live.js").content_type == "text/javascript; charset=utf-8");
}

TEST_CASE("Admin pages: requests' times are drawn, those of operations that there were") {
  AdminPages pages({});
  pages.SetServing(
      {.statistics =
           [] {
             StatisticList list = SomeStatistics();
             list.Gauge("time_put_p99_ns", 2'500'000);
             const Metric put{.name = "kvd_x", .label = "o", .label_value = "put"};
             const Metric other{.name = "kvd_x", .label = "o", .label_value = "touch"};
             list.Histogram(
                 {.cells = {{{1'000, "1e-06"}, 1'000'000}}, .count = 1'000'001, .sum_ns = 7}, put);
             list.Histogram({.cells = {{{1'000, "1e-06"}, 0}}, .count = 0, .sum_ns = 0}, other);
             return list;
           },
       .sessions = [] { return std::vector<AdminSession>(); }});
  const std::string page = Get(pages, "/").body;
  CHECK_THAT(page, Catch::Contains("<th>put</th><td class=\"n\">1,000,001</td>"));
  CHECK_THAT(page, Catch::Contains("2.5 ms"));
  CHECK_THAT(page, Catch::Contains("<title>up to 1 &micro;s: 1,000,000</title>"));
  CHECK_THAT(page, Catch::Contains("<title>over 1 &micro;s: 1</title>"));
  CHECK_THAT(page, !Catch::Contains("<th>touch</th>"));
}

TEST_CASE("Admin pages: items by size, and what the port counts, where that is not 0") {
  AdminPages pages({});
  pages.SetServing(
      {.statistics =
           [] {
             StatisticList list = SomeStatistics();
             const auto size = [&](std::string_view name, std::string_view up_to, uint64_t bytes) {
               list.Gauge("", bytes, {.name = name, .label = "up_to", .label_value = up_to});
             };
             size("kvd_heap_held_bytes", "64", 0);
             size("kvd_heap_held_bytes", "128", 4096);
             size("kvd_heap_held_bytes", "+Inf", 8192);
             size("kvd_heap_occupied_bytes", "128", 1024);
             size("kvd_heap_occupied_bytes", "+Inf", 8192);
             const auto port = [&](std::string_view name, uint64_t count) {
               list.Counter(
                   "", count,
                   {.name = "kvd_rdma_port_errors_total", .label = "counter", .label_value = name});
             };
             port("out_of_sequence", 5);
             port("packet_seq_err", 0);
             return list;
           },
       .sessions = [] { return std::vector<AdminSession>(); }});
  const std::string page = Get(pages, "/").body;
  CHECK_THAT(page, Catch::Contains("<th>up to 128 B</th><td class=\"n\">4 KiB</td>"
                                   "<td class=\"n\">1 KiB</td><td class=\"n\">3 KiB</td>"
                                   "<td class=\"n\">25 %</td>"));
  CHECK_THAT(page, Catch::Contains("<th>over 128 B</th><td class=\"n\">8 KiB</td>"));
  CHECK_THAT(page, !Catch::Contains("up to 64 B"));
  CHECK_THAT(page, Catch::Contains("out_of_sequence <b>5</b>"));
  CHECK_THAT(page, !Catch::Contains("packet_seq_err"));
}

TEST_CASE("Admin pages: slow requests are shown, on the page the newest of them, in JSON all") {
  AdminSource source = SourceOf();
  source.slow_requests = [] {
    std::vector<AdminSlowRequest> rows(128);
    rows[0] = {.at_unix_us = 1'000'000'000'000'000,
               .requests = 31,
               .operation = "put",
               .session_id = 7,
               .name = "<b>",
               .key_bytes = 3,
               .value_bytes = 2048,
               .phase = "evicting",
               .total_us = 12'345,
               .waiting_us = 1,
               .pulling_us = 2,
               .evicting_us = 12'000,
               .executing_us = 342,
               .stalled_us = 77'000};
    return rows;
  };
  AdminPages pages({});
  pages.SetServing(source);
  const std::string page = Get(pages, "/").body;
  CHECK_THAT(page, Catch::Contains("<td>2001-09-09T01:46:40Z</td><td class=\"n\">31</td>"
                                   "<td>put</td><td>7</td>"
                                   "<td>&lt;b&gt;</td><td class=\"n\">3 B</td>"
                                   "<td class=\"n\">2 KiB</td><td class=\"n\"><b>12.345</b></td>"));
  CHECK_THAT(page, Catch::Contains("<td class=\"n\">77.000</td>"));
  CHECK_THAT(page, Catch::Contains("kvcli slowlog"));
  const auto json = nlohmann::json::parse(Get(pages, "/status.json").body);
  REQUIRE(json["slow_requests"].size() == 128);
  const auto& slow = json["slow_requests"][0];
  CHECK(slow["at"] == "2001-09-09T01:46:40Z");
  CHECK(slow["session"] == 7);
  CHECK(slow["name"] == "<b>");
  CHECK(slow["us"] == 12'345);
  CHECK(slow["requests"] == 31);
  CHECK(slow["stalled_us"] == 77'000);
  CHECK(slow["phase"] == "evicting");
  CHECK(slow["evicting_us"] == 12'000);
}

TEST_CASE("Admin pages: a page of very many sessions stays short, and says where all are") {
  AdminPages pages({});
  pages.SetServing(SourceOf(std::vector<AdminSession>(100'000)));
  const std::string page = Get(pages, "/").body;
  CHECK(page.size() < 100'000);
  CHECK_THAT(page, Catch::Contains("and 99800 more"));
}

}  // namespace kvd::test
