#include "server/operations/statistics.h"

#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "common/base/string_view.h"
#include "common/layout/frames.h"

namespace kvd {
namespace {

struct OpcodeName {
  Opcode opcode;
  std::string_view name;
};

constexpr OpcodeName kOpcodeNames[] = {
    {Opcode::kPing, "requests_ping"},       {Opcode::kGet, "requests_get"},
    {Opcode::kPut, "requests_put"},         {Opcode::kDelete, "requests_delete"},
    {Opcode::kExists, "requests_exists"},   {Opcode::kStat, "requests_stat"},
    {Opcode::kRelease, "requests_release"}, {Opcode::kIncrement, "requests_increment"},
    {Opcode::kAppend, "requests_append"},   {Opcode::kPrepend, "requests_prepend"},
    {Opcode::kTouch, "requests_touch"},     {Opcode::kFlush, "requests_flush"},
    {Opcode::kHits, "requests_hits"},       {Opcode::kSessions, "requests_sessions"},
    {Opcode::kKick, "requests_kick"}};

uint64_t Microseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

}  // namespace

void StatisticsText::Add(std::string_view name, uint64_t value) {
  absl::StrAppend(&text_, ToAbsl(name), " ", value, "\n");
}

void StatisticsText::Add(std::string_view name, std::string_view value) {
  absl::StrAppend(&text_, ToAbsl(name), " ", ToAbsl(value), "\n");
}

ShardStats operator+(const ShardStats& a, const ShardStats& b) {
  ShardStats sum = a;
  sum.items += b.items;
  sum.user_bytes += b.user_bytes;
  sum.local_items += b.local_items;
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
  sum.index_bytes_given_back += b.index_bytes_given_back;
  sum.expired_items += b.expired_items;
  sum.expired_bytes += b.expired_bytes;
  sum.evicted_items += b.evicted_items;
  sum.evicted_bytes += b.evicted_bytes;
  return sum;
}

void StatisticsText::AddShards(const ShardStats& sum) {
  Add("items", sum.items);
  Add("user_bytes", sum.user_bytes);
  Add("local_items", sum.local_items);
  Add("expiring_items", sum.expiring_items);
  Add("buckets", sum.buckets);
  Add("overflow_headers", sum.overflow_headers);
  Add("index_bytes", sum.index_bytes);
  Add("heap_bytes", sum.heap_bytes);
  Add("heap_used_bytes", sum.heap_used_bytes);
  Add("puts", sum.puts);
  Add("deletes", sum.deletes);
  Add("overwrites_in_place", sum.overwrites_in_place);
  Add("overwrites_moved", sum.overwrites_moved);
  Add("splits", sum.splits);
  Add("merges", sum.merges);
  Add("index_bytes_given_back", sum.index_bytes_given_back);
  Add("no_space", sum.no_space);
  Add("expired_items", sum.expired_items);
  Add("expired_bytes", sum.expired_bytes);
  Add("evicted_items", sum.evicted_items);
  Add("evicted_bytes", sum.evicted_bytes);
  Add("reclaimed_bytes", sum.expired_bytes + sum.evicted_bytes);
}

void StatisticsText::AddRequests(const RequestCounters* const* pollers, size_t count) {
  const auto sum = [&](auto&& counter_of) {
    uint64_t total = 0;
    for (size_t i = 0; i < count; ++i) total += counter_of(*pollers[i]).get();
    return total;
  };
  for (const OpcodeName& entry : kOpcodeNames) {
    const auto index = static_cast<size_t>(entry.opcode);
    Add(entry.name, sum([index](const RequestCounters& c) -> const RequestCounter& {
          return c.requests[index];
        }));
  }
  Add("malformed",
      sum([](const RequestCounters& c) -> const RequestCounter& { return c.malformed; }));
  Add("pulled_bytes",
      sum([](const RequestCounters& c) -> const RequestCounter& { return c.pulled_bytes; }));
  Add("requests_forwarded",
      sum([](const RequestCounters& c) -> const RequestCounter& { return c.forwarded; }));
  Add("poller_sleeps",
      sum([](const RequestCounters& c) -> const RequestCounter& { return c.sleeps; }));
}

void StatisticsText::AddProcess() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return;
  Add("cpu_user_us", Microseconds(usage.ru_utime));
  Add("cpu_system_us", Microseconds(usage.ru_stime));
  Add("rss_peak_bytes", static_cast<uint64_t>(usage.ru_maxrss) * 1024);
}

}  // namespace kvd
