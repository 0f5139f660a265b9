#include "client/cli/stat_screen.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/text.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

constexpr size_t kLines = 24;
constexpr size_t kColumns = 80;
constexpr size_t kLabelColumns = 11;

// The statistics by their names.
class Facts {
 public:
  explicit Facts(const KeyValueStore::Statistics& statistics) : statistics_(statistics) {}

  std::optional<std::string> Text(std::string_view name) const {
    for (const auto& [known, value] : statistics_) {
      if (known == name) return OneLine(value);
    }
    return std::nullopt;
  }
  std::optional<uint64_t> Number(std::string_view name) const {
    uint64_t number = 0;
    const std::optional<std::string> text = Text(name);
    if (!text.has_value() || !absl::SimpleAtoi(*text, &number)) return std::nullopt;
    return number;
  }
  std::optional<std::string> Bytes(std::string_view name) const {
    const std::optional<uint64_t> number = Number(name);
    if (!number.has_value()) return std::nullopt;
    return FormatBytes(*number);
  }

 private:
  const KeyValueStore::Statistics& statistics_;
};

// One line of the screen: what is known of it, with commas.
class Line {
 public:
  explicit Line(std::string label) : label_(std::move(label)) {}

  // "<before><value><behind>", if there is a value.
  Line& Add(std::string_view before, const std::optional<std::string>& value,
            std::string_view behind = {}) {
    if (value.has_value()) parts_.push_back(absl::StrCat(ToAbsl(before), *value, ToAbsl(behind)));
    return *this;
  }
  Line& Add(std::string_view before, std::optional<uint64_t> value, std::string_view behind = {}) {
    return Add(before, value.has_value() ? std::optional(absl::StrCat(*value)) : std::nullopt,
               behind);
  }
  // "<before>12.3 %<behind>"
  Line& AddShare(std::string_view before, std::optional<uint64_t> part,
                 std::optional<uint64_t> whole, std::string_view behind) {
    if (!part.has_value() || whole.value_or(0) == 0) return *this;
    return Add(
        before,
        absl::StrFormat("%.1f %%", 100 * static_cast<double>(*part) / static_cast<double>(*whole)),
        behind);
  }

  // Broken between parts where it is longer than the screen is wide.
  void AppendTo(std::string& screen) const {
    if (parts_.empty()) return;
    std::string line = label_;
    line.resize(kLabelColumns, ' ');
    bool first = true;
    for (const std::string& part : parts_) {
      if (!first && DisplayWidth(line) + 2 + DisplayWidth(part) > kColumns - 1) {
        absl::StrAppend(&screen, line, ",\n");
        line.assign(kLabelColumns, ' ');
        first = true;
      }
      absl::StrAppend(&line, first ? "" : ", ", part);
      first = false;
    }
    absl::StrAppend(&screen, Shortened(line), "\n");
  }

 private:
  // A single part may be longer than any screen: a server can send what it likes.
  static std::string Shortened(std::string line) {
    if (DisplayWidth(line) <= kColumns) return line;
    while (DisplayWidth(line) > kColumns - 3) line.pop_back();
    return line + "...";
  }

  const std::string label_;
  std::vector<std::string> parts_;
};

std::optional<std::string> UpTime(std::optional<uint64_t> seconds) {
  if (!seconds.has_value()) return std::nullopt;
  const uint64_t minutes = *seconds / 60;
  if (minutes == 0) return absl::StrCat(*seconds, " s");
  if (minutes < 60) return absl::StrCat(minutes, " min");
  const uint64_t hours = minutes / 60;
  if (hours < 24) return absl::StrFormat("%d h %02d min", hours, minutes % 60);
  return absl::StrFormat("%d d %02d h", hours / 24, hours % 24);
}

std::optional<std::string> Seconds(std::optional<uint64_t> microseconds) {
  if (!microseconds.has_value()) return std::nullopt;
  return absl::StrFormat("%.2f s", static_cast<double>(*microseconds) / 1e6);
}

void AppendWhatItHolds(const Facts& facts, std::string& screen) {
  Line("memory")
      .Add("", facts.Bytes("memory_bytes"))
      .Add("of ", facts.Text("page_kind"), " pages")
      .Add("free ", facts.Bytes("free_bytes"))
      .Add("longest run ", facts.Bytes("largest_free_run_bytes"))
      .AppendTo(screen);
  Line("  index")
      .Add("", facts.Bytes("index_bytes"))
      .Add("", facts.Number("buckets"), " buckets")
      .AddShare("", facts.Number("overflow_headers"), facts.Number("buckets"), " overflowing")
      .AppendTo(screen);
  Line("  heap")
      .Add("", facts.Bytes("heap_bytes"))
      .AddShare("", facts.Number("heap_used_bytes"), facts.Number("heap_bytes"), " used")
      .AppendTo(screen);
  Line("items")
      .Add("", facts.Number("items"))
      .Add("keys and values ", facts.Bytes("user_bytes"))
      .AddShare("", facts.Number("local_items"), facts.Number("items"), " within their bucket")
      .Add("", facts.Number("expiring_items"), " expire")
      .AppendTo(screen);
  Line("  gone")
      .Add("expired ", facts.Number("expired_items"))
      .Add("evicted ", facts.Number("evicted_items"))
      .Add("--evict=", facts.Text("evict"))
      .Add("refused for want of room ", facts.Number("no_space"))
      .AppendTo(screen);
}

void AppendWhatItDoes(const Facts& facts, std::string& screen) {
  Line("sessions")
      .Add("", facts.Number("sessions"))
      .Add("at most ", facts.Number("sessions_max"))
      .Add("so far ", facts.Number("sessions_total"))
      .Add("refused ", facts.Number("refused"))
      .AppendTo(screen);
  Line("requests")
      .Add("put ", facts.Number("requests_put"))
      .Add("delete ", facts.Number("requests_delete"))
      .Add("increment ", facts.Number("requests_increment"))
      .Add("touch ", facts.Number("requests_touch"))
      .Add("get ", facts.Number("requests_get"))
      .Add("flush ", facts.Number("requests_flush"))
      .Add("malformed ", facts.Number("malformed"))
      .AppendTo(screen);
  Line("reported")
      .Add("GETs ", facts.Number("reported_gets"))
      .AddShare("", facts.Number("reported_hits"), facts.Number("reported_gets"), " hits")
      .Add("READs ", facts.Number("reported_reads"))
      .Add("torn ", facts.Number("reported_torn_reads"))
      .Add("asked kvd ", facts.Number("reported_fallbacks"))
      .AppendTo(screen);
  Line("writes")
      .Add("in place ", facts.Number("overwrites_in_place"))
      .Add("moved ", facts.Number("overwrites_moved"))
      .Add("pulled from clients ", facts.Bytes("pulled_bytes"))
      .AppendTo(screen);
  Line("cpu")
      .Add("user ", Seconds(facts.Number("cpu_user_us")))
      .Add("system ", Seconds(facts.Number("cpu_system_us")))
      .Add("pollers ", facts.Number("pollers"))
      .Add("--poll=", facts.Text("poll_mode"))
      .Add("slept ", facts.Number("poller_sleeps"), " times")
      .Add("stalled ", facts.Number("poller_stalls"), " times")
      .Add("for ", Seconds(facts.Number("poller_stalled_us")))
      .AppendTo(screen);
  Line("rdma")
      .Add("", facts.Text("rdma_device"))
      .Add("", facts.Text("rdma_listen"))
      .Add("", facts.Text("rdma_port_state"))
      .Add("MTU ", facts.Number("rdma_mtu_bytes"))
      .Add("connections ", facts.Number("rdma_connections"))
      .Add("broken ", facts.Number("rdma_completion_errors"))
      .AppendTo(screen);
}

}  // namespace

std::string StatScreen(const KeyValueStore::Statistics& statistics, std::string_view target) {
  const Facts facts(statistics);
  std::string screen;
  Line("kvd")
      .Add("", facts.Text("version"))
      .Add("pid ", facts.Number("pid"))
      .Add("up ", UpTime(facts.Number("uptime_seconds")))
      .Add("serves ", facts.Text("transports"))
      .AppendTo(screen);
  Line("  at").Add("", std::optional(OneLine(target))).AppendTo(screen);
  AppendWhatItHolds(facts, screen);
  AppendWhatItDoes(facts, screen);
  size_t end = 0;
  for (size_t lines = 1; lines < kLines && end != std::string::npos; ++lines) {
    end = screen.find('\n', end);
    if (end != std::string::npos) ++end;
  }
  if (end != std::string::npos) screen.resize(end);
  return screen + "'kvcli stat --all' prints every statistic by its name.\n";
}

}  // namespace kvd::cli
