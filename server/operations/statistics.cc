#include "server/operations/statistics.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>

#include "common/layout/frames.h"

namespace kvd {
namespace {

struct OpcodeName {
  Opcode opcode;
  std::string_view name;       // in the statistics
  std::string_view operation;  // label of the metric
};

constexpr OpcodeName kOpcodeNames[] = {{Opcode::kPing, "requests_ping", "ping"},
                                       {Opcode::kGet, "requests_get", "get"},
                                       {Opcode::kPut, "requests_put", "put"},
                                       {Opcode::kDelete, "requests_delete", "delete"},
                                       {Opcode::kExists, "requests_exists", "exists"},
                                       {Opcode::kStat, "requests_stat", "stat"},
                                       {Opcode::kRelease, "requests_release", "release"},
                                       {Opcode::kIncrement, "requests_increment", "increment"},
                                       {Opcode::kAppend, "requests_append", "append"},
                                       {Opcode::kPrepend, "requests_prepend", "prepend"},
                                       {Opcode::kTouch, "requests_touch", "touch"},
                                       {Opcode::kFlush, "requests_flush", "flush"},
                                       {Opcode::kHits, "requests_hits", "hits"},
                                       {Opcode::kSessions, "requests_sessions", "sessions"},
                                       {Opcode::kKick, "requests_kick", "kick"}};

// By SizeGroupOf.
constexpr std::string_view kSizeGroupNames[kSizeGroupCount] = {
    "64", "128", "256", "512", "1024", "2048", "4096", "8192", "16384", "32768", "+Inf"};

// Labels of one family, region memory by its use.
Metric RegionUse(std::string_view use) {
  return {.name = "kvd_region_bytes",
          .help = "Memory of the region by what it is used for; all together are the region.",
          .label = "use",
          .label_value = use};
}

uint64_t Kibibytes(std::string_view line) {
  uint64_t number = 0;
  const size_t digits = line.find_first_of("0123456789");
  if (digits != line.npos) std::from_chars(line.data() + digits, line.data() + line.size(), number);
  return number * 1024;
}

uint64_t Microseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

}  // namespace

LockedMemory ReadLockedMemory(const std::string& root) {
  LockedMemory memory;
  std::ifstream file(root + "/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    const std::string_view text = line;
    if (text.starts_with("VmLck:")) memory.locked_bytes = Kibibytes(text);
    if (text.starts_with("VmPin:")) memory.pinned_bytes = Kibibytes(text);
    if (text.starts_with("HugetlbPages:")) memory.hugepages_bytes = Kibibytes(text);
  }
  return memory;
}

std::string_view OperationName(Opcode opcode) {
  const auto* const found =
      std::find_if(std::begin(kOpcodeNames), std::end(kOpcodeNames),
                   [opcode](const OpcodeName& entry) { return entry.opcode == opcode; });
  return found == std::end(kOpcodeNames) ? "unknown" : found->operation;
}

ShardStats operator+(const ShardStats& a, const ShardStats& b) {
  ShardStats sum = a;
  sum.items += b.items;
  sum.user_bytes += b.user_bytes;
  sum.local_items += b.local_items;
  sum.borrowed_places += b.borrowed_places;
  sum.expiring_items += b.expiring_items;
  sum.buckets += b.buckets;
  sum.overflow_headers += b.overflow_headers;
  sum.index_bytes += b.index_bytes;
  sum.heap_bytes += b.heap_bytes;
  sum.heap_used_bytes += b.heap_used_bytes;
  sum.puts += b.puts;
  sum.deletes += b.deletes;
  sum.overwrites_in_place += b.overwrites_in_place;
  sum.overwrites_moved += b.overwrites_moved;
  sum.splits += b.splits;
  sum.merges += b.merges;
  sum.no_space += b.no_space;
  sum.damaged_items_met += b.damaged_items_met;
  sum.index_bytes_given_back += b.index_bytes_given_back;
  sum.expired_items += b.expired_items;
  sum.expired_bytes += b.expired_bytes;
  sum.evicted_items += b.evicted_items;
  sum.evicted_bytes += b.evicted_bytes;
  for (uint32_t group = 0; group < kSizeGroupCount; ++group) {
    sum.heap_held_of[group] += b.heap_held_of[group];
    sum.heap_used_of[group] += b.heap_used_of[group];
  }
  return sum;
}

namespace {

uint64_t SaturatedSum(uint64_t a, uint64_t b) { return a + std::min(b, UINT64_MAX - a); }

// Metrics of what clients report, in the order of kReportedNames.
constexpr Metric kReportedMetrics[] = {
    {.name = "kvd_client_reported_gets_total", .help = "GETs that clients did, as they report."},
    {.name = "kvd_client_reported_hits_total",
     .help = "GETs that found an item, as clients report."},
    {.name = "kvd_client_reported_misses_total",
     .help = "GETs that found none, as clients report."},
    {.name = "kvd_client_reported_reads_total",
     .help = "READs of clients, and loads of shared memory in their place, as they report."},
    {.name = "kvd_client_reported_read_bytes_total",
     .help = "What these reads fetched, as clients report."},
    {.name = "kvd_client_reported_torn_reads_total",
     .help = "Reads that met a write and were repeated, as clients report."},
    {.name = "kvd_client_reported_retries_total",
     .help = "Reads in vain since the item or its bucket had moved, as clients report."},
    {.name = "kvd_client_reported_fallbacks_total",
     .help = "GETs for which clients had to ask kvd, as they report."},
    {.name = "kvd_client_reported_read_errors_total",
     .help = "Sessions that broke while a READ was under way, as clients report."}};
static_assert(std::size(kReportedMetrics) == kReportedCounts);

void AddReported(const ReportedCounts& sum, StatisticList& list) {
  const auto words = std::bit_cast<ReportedWords>(sum);
  for (size_t i = 0; i < kReportedCounts; ++i) {
    list.Counter(kReportedNames[i], words[i], kReportedMetrics[i]);
  }
}

}  // namespace

void ReportedSums::Add(const ReportedCounts& counts) {
  const auto words = std::bit_cast<ReportedWords>(counts);
  for (size_t i = 0; i < kReportedCounts; ++i) {
    sums_[i].Add(std::min(words[i], UINT64_MAX - sums_[i].get()));
  }
}

ReportedCounts ReportedSums::get() const {
  ReportedWords words;
  for (size_t i = 0; i < kReportedCounts; ++i) words[i] = sums_[i].get();
  return std::bit_cast<ReportedCounts>(words);
}

ReportedCounts operator+(const ReportedCounts& a, const ReportedCounts& b) {
  auto sum = std::bit_cast<ReportedWords>(a);
  const auto more = std::bit_cast<ReportedWords>(b);
  for (size_t i = 0; i < kReportedCounts; ++i) sum[i] = SaturatedSum(sum[i], more[i]);
  return std::bit_cast<ReportedCounts>(sum);
}

void AddShards(const ShardStats& sum, StatisticList& list) {
  const uint64_t heap_free = sum.heap_bytes - std::min(sum.heap_bytes, sum.heap_used_bytes);
  list.Gauge("items", sum.items, {.help = "Items that are there."});
  list.Gauge("user_bytes", sum.user_bytes,
             {.name = "kvd_items_bytes", .help = "Keys and values of the items."});
  list.Gauge("local_items", sum.local_items,
             {.help = "Items that lie within their bucket: a GET reads once."});
  list.Gauge("expiring_items", sum.expiring_items, {.help = "Items that have an expiry."});
  list.Gauge("buckets", sum.buckets, {.help = "Buckets of the index."});
  list.Gauge("overflow_headers", sum.overflow_headers,
             {.help = "Headers of the index in chains behind buckets."});
  list.Gauge("borrowed_places", sum.borrowed_places,
             {.help = "Items and overflow headers that lie in the unused space of other buckets, "
                      "as there was no "
                      "other memory."});
  list.Gauge("index_bytes", sum.index_bytes, RegionUse("index"));
  list.Gauge("heap_bytes", sum.heap_bytes);
  list.Gauge("heap_used_bytes", sum.heap_used_bytes, RegionUse("heap_used"));
  list.Gauge("", heap_free, RegionUse("heap_free"));
  for (uint32_t group = 0; group < kSizeGroupCount; ++group) {
    list.Gauge("", sum.heap_held_of[group],
               {.name = "kvd_heap_held_bytes",
                .help = "Pages for items outside of buckets, by the size of what they hold.",
                .label = "up_to",
                .label_value = kSizeGroupNames[group]});
  }
  for (uint32_t group = 0; group < kSizeGroupCount; ++group) {
    list.Gauge("", sum.heap_used_of[group],
               {.name = "kvd_heap_occupied_bytes",
                .help = "Of these, what items occupy, the unused ends of their places included.",
                .label = "up_to",
                .label_value = kSizeGroupNames[group]});
  }
  list.Counter("puts", sum.puts,
               {.name = "kvd_writes_total", .help = "Writes of an item that were done."});
  list.Counter("deletes", sum.deletes, {.help = "Items that were deleted by request."});
  list.Counter("overwrites_in_place", sum.overwrites_in_place,
               {.name = "kvd_overwrites_total",
                .help = "Writes that replaced a value, by where the new one lies.",
                .label = "place",
                .label_value = "same"});
  list.Counter("overwrites_moved", sum.overwrites_moved,
               {.name = "kvd_overwrites_total", .label = "place", .label_value = "elsewhere"});
  list.Counter("splits", sum.splits,
               {.name = "kvd_bucket_splits_total", .help = "Buckets split as the index grew."});
  list.Counter("merges", sum.merges,
               {.name = "kvd_bucket_merges_total", .help = "Buckets merged as the index shrank."});
  list.Counter("index_bytes_given_back", sum.index_bytes_given_back,
               {.name = "kvd_index_given_back_bytes_total",
                .help = "Memory that the index has given back."});
  list.Counter("no_space", sum.no_space,
               {.name = "kvd_writes_refused_total",
                .help = "Writes that were refused because there was no room."});
  list.Counter("damaged_items_met", sum.damaged_items_met,
               {.help = "Requests that met an item whose bytes do not match its checksum."});
  list.Counter("expired_items", sum.expired_items,
               {.help = "Items that were taken away because their time had come."});
  list.Counter("expired_bytes", sum.expired_bytes,
               {.name = "kvd_reclaimed_bytes_total",
                .help = "Memory of items that were taken away, by why.",
                .label = "reason",
                .label_value = "expired"});
  list.Counter("evicted_items", sum.evicted_items, {.help = "Items that made room for others."});
  list.Counter("evicted_bytes", sum.evicted_bytes,
               {.name = "kvd_reclaimed_bytes_total", .label = "reason", .label_value = "evicted"});
  list.Counter("reclaimed_bytes", sum.expired_bytes + sum.evicted_bytes);
}

void AddRequests(std::span<const RequestCounters* const> pollers, StatisticList& list) {
  const auto sum = [pollers](auto&& counter_of) {
    uint64_t total = 0;
    for (const RequestCounters* counters : pollers) total += counter_of(*counters).get();
    return total;
  };
  for (const OpcodeName& entry : kOpcodeNames) {
    const auto index = static_cast<size_t>(entry.opcode);
    const uint64_t count =
        sum([index](const RequestCounters& c) -> auto& { return c.requests[index]; });
    list.Counter(
        entry.name, count,
        {.name = "kvd_requests_total",
         .help = "Requests that came, by operation. GETs that clients do by themselves are "
                 "not among them.",
         .label = "operation",
         .label_value = entry.operation});
  }
  ReportedCounts reported{};
  for (const RequestCounters* counters : pollers) reported = reported + counters->reported.get();
  AddReported(reported, list);
  list.Counter("reported_disbelieved",
               sum([](const RequestCounters& c) -> auto& { return c.disbelieved_reports; }),
               {.name = "kvd_client_disbelieved_reports_total",
                .help = "Reports of clients that said more than a client can do: nothing of them "
                        "is counted."});
  list.Counter("sampled_hits",
               sum([](const RequestCounters& c) -> auto& { return c.sampled_hits; }),
               {.name = "kvd_client_sampled_hits_total",
                .help = "GETs whose keys clients told a kvd that evicts: a sample."});
  list.Counter("malformed", sum([](const RequestCounters& c) -> auto& { return c.malformed; }),
               {.name = "kvd_malformed_frames_total", .help = "Frames that broke the protocol."});
  list.Counter("pulled_bytes",
               sum([](const RequestCounters& c) -> auto& { return c.pulled_bytes; }),
               {.help = "Long values that kvd fetched from its clients' memory."});
  list.Counter("requests_forwarded",
               sum([](const RequestCounters& c) -> auto& { return c.forwarded; }),
               {.help = "Requests that came to one poller and were executed by another."});
  list.Counter("poller_sleeps", sum([](const RequestCounters& c) -> auto& { return c.sleeps; }),
               {.help = "How often pollers found nothing to do, and slept."});
}

void AddProcess(StatisticList& list) {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
  const auto cpu = [](std::string_view mode) {
    return Metric{.name = "kvd_cpu_seconds_total",
                  .help = "Processor time of kvd, all threads.",
                  .label = "mode",
                  .label_value = mode,
                  .is_microseconds = true};
  };
  list.Counter("cpu_user_us", Microseconds(usage.ru_utime), cpu("user"));
  list.Counter("cpu_system_us", Microseconds(usage.ru_stime), cpu("system"));
  const LockedMemory locked = ReadLockedMemory();
  list.Gauge("locked_bytes", locked.locked_bytes,
             {.name = "kvd_locked_memory_bytes",
              .help = "Memory of the process that the kernel keeps from being swapped (VmLck)."});
  list.Gauge("pinned_bytes", locked.pinned_bytes,
             {.name = "kvd_pinned_memory_bytes",
              .help = "Memory of the process that is held for devices (VmPin)."});
  list.Gauge("hugepages_bytes", locked.hugepages_bytes,
             {.name = "kvd_hugepages_bytes",
              .help = "Memory of the process that really is of the kernel's hugepages."});
  list.Gauge("rss_peak_bytes", static_cast<uint64_t>(usage.ru_maxrss) * 1024,
             {.name = "kvd_resident_memory_peak_bytes",
              .help = "The most that the process had of the machine's memory."});
}

}  // namespace kvd
