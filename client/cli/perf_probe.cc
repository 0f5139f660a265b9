#include "client/cli/perf_probe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/perf_causes.h"
#include "client/cli/text.h"
#include "common/base/checksum.h"
#include "common/base/latency_histogram.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

constexpr size_t kKeysMax = 256;  // of a class of sizes
constexpr uint64_t kItemsScannedMax = 200'000;
constexpr uint64_t kBytesScannedMax = 256 * kMiB;
constexpr uint64_t kGets = 2000;
constexpr uint64_t kGetsMin = 16;
constexpr uint64_t kBytesPerKind = 64 * kMiB;
constexpr uint64_t kFloorReads = 400;
constexpr uint64_t kRequests = 200;
constexpr uint64_t kMisses = 400;
constexpr uint64_t kOwnItems = 64;
constexpr size_t kOwnValueBytes = 64;
constexpr uint32_t kLocations = uint32_t{1} << 20;  // so that hardly two keys share one

double Us(uint64_t ns) { return static_cast<double>(ns) / 1e3; }

struct Sample {
  std::vector<std::string> small;
  std::vector<std::string> large;
  uint64_t small_bytes = 0;  // of all values
  uint64_t large_bytes = 0;
};

class PerfProbe {
 public:
  PerfProbe(const PerfOptions& options, const Clock& clock, PerfFacts& facts)
      : options_(options), clock_(clock), facts_(facts) {}

  PerfOutcome Run() {
    PerfOutcome outcome;
    outcome.status = Measure();
    outcome.left_behind = CleanUp();
    return outcome;
  }

 private:
  absl::Status Measure() {
    KVD_ASSIGN_OR_RETURN(store_, options_.connect(0));
    KVD_RETURN_IF_ERROR(TakeStatistics());
    const uint64_t queued_us = std::exchange(facts_.server_queued_us, 0);
    const uint64_t stalled_us = std::exchange(facts_.server_stalled_us, 0);
    KVD_RETURN_IF_ERROR(MeasureAll());
    KVD_RETURN_IF_ERROR(TakeStatistics());
    // Of another kvd, if it was started anew.
    facts_.server_queued_us -= std::min(queued_us, facts_.server_queued_us);
    facts_.server_stalled_us -= std::min(stalled_us, facts_.server_stalled_us);
    return absl::OkStatus();
  }

  absl::Status MeasureAll() {
    if (options_.writes) KVD_RETURN_IF_ERROR(Write());
    KVD_RETURN_IF_ERROR(ChooseItems());
    KVD_RETURN_IF_ERROR(MeasureRequests());
    KVD_ASSIGN_OR_RETURN(facts_.miss, MeasureMisses());
    KVD_ASSIGN_OR_RETURN(facts_.cold, MeasureGets(sample_.small, sample_.small_bytes));
    KVD_ASSIGN_OR_RETURN(facts_.large, MeasureGets(sample_.large, sample_.large_bytes));
    if (sample_.small.empty() || options_.interrupted()) return absl::OkStatus();
    KVD_ASSIGN_OR_RETURN(store_, options_.connect(kLocations));
    std::string value;
    ItemInfo info;
    for (const std::string& key : sample_.small) {  // remembers where they lie
      if (const absl::Status got = store_->Get(key, value, info);
          !got.ok() && !absl::IsNotFound(got))
        return got;
    }
    KVD_ASSIGN_OR_RETURN(facts_.known, MeasureGets(sample_.small, sample_.small_bytes));
    return absl::OkStatus();
  }

  absl::Status TakeStatistics() {
    KVD_ASSIGN_OR_RETURN(const KeyValueStore::Statistics statistics, store_->Stats());
    for (const auto& [name, value] : statistics) {
      if (name == "page_kind") facts_.page_kind = value;
      if (name == "page_fallback") facts_.page_fallback = value;
      if (name == "poll_mode") facts_.poll_mode = value;
      if (name == "numa_node") facts_.region_node = value;
      uint64_t number = 0;
      if (!absl::SimpleAtoi(value, &number)) continue;
      if (name == "rdma_mtu_bytes") facts_.server_mtu_bytes = number;
      if (name == "poller_queued_us") facts_.server_queued_us = number;
      if (name == "poller_stalled_us") facts_.server_stalled_us = number;
      if (name == "items") facts_.items = number;
      if (name == "local_items") facts_.local_items = number;
      if (name == "buckets") facts_.buckets = number;
      if (name == "overflow_headers") facts_.overflow_headers = number;
    }
    return absl::OkStatus();
  }

  absl::Status Write() {
    const std::string value(kOwnValueBytes, 'v');
    for (uint64_t i = 0; i < kOwnItems && !options_.interrupted(); ++i) {
      written_.push_back(absl::StrCat(options_.key_prefix, i));
      KVD_RETURN_IF_ERROR(store_->Put(written_.back(), value, {}).status());
    }
    return absl::OkStatus();
  }

  // Keys of items that are there, spread over the store as their hashes are.
  absl::Status ChooseItems() {
    if (options_.writes) {
      sample_.small = written_;
      sample_.small_bytes = written_.size() * kOwnValueBytes;
      return absl::OkStatus();
    }
    // Items next to each other have hashes that are alike, and would drive each other out of a
    // location cache: any of those that are scanned is as likely to be chosen.
    Random random(options_.seed);
    uint64_t scanned = 0;
    uint64_t bytes = 0;
    uint64_t small = 0;
    uint64_t large = 0;
    std::vector<std::pair<std::string, uint64_t>> chosen[2];
    const auto visit = [&](std::string_view key, std::string_view value, const ItemInfo&) {
      const bool is_small = value.size() <= kPerfSmallBytes;
      auto& keys = chosen[is_small ? 0 : 1];
      const uint64_t met = is_small ? ++small : ++large;
      const uint64_t place = met <= kKeysMax ? met - 1 : random.Uniform(met);
      if (place == keys.size()) keys.emplace_back();
      if (place < keys.size()) keys[place] = {std::string(key), value.size()};
      bytes += value.size();
      return ++scanned < kItemsScannedMax && bytes < kBytesScannedMax && !options_.interrupted();
    };
    KVD_RETURN_IF_ERROR(store_->Scan(visit, {}).status());
    for (auto& [key, value_bytes] : chosen[0]) {
      sample_.small.push_back(std::move(key));
      sample_.small_bytes += value_bytes;
    }
    for (auto& [key, value_bytes] : chosen[1]) {
      sample_.large.push_back(std::move(key));
      sample_.large_bytes += value_bytes;
    }
    return absl::OkStatus();
  }

  absl::Status MeasureRequests() {
    LatencyHistogram times;
    for (uint64_t i = 0; i < kRequests && !options_.interrupted(); ++i) {
      KVD_ASSIGN_OR_RETURN(const std::chrono::nanoseconds trip, store_->Ping());
      times.Add(trip.count());
    }
    facts_.request_p50_us = Us(times.Percentile(0.5));
    facts_.request_p99_us = Us(times.Percentile(0.99));
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<GetFacts>> MeasureMisses() {
    std::vector<std::string> absent;
    Random random(options_.seed);
    for (uint64_t i = 0; i < kMisses; ++i) {
      absent.push_back(absl::StrCat("kvcli-perf-absent:", absl::Hex(random())));
    }
    return MeasureGets(absent, 0);
  }

  // Nothing where there are no keys. An item that has gone meanwhile is no error.
  absl::StatusOr<std::optional<GetFacts>> MeasureGets(const std::vector<std::string>& keys,
                                                      uint64_t value_bytes) {
    if (keys.empty()) return std::nullopt;
    const double mean_bytes = static_cast<double>(value_bytes) / static_cast<double>(keys.size());
    const uint64_t rounds =
        std::clamp(static_cast<uint64_t>(static_cast<double>(kBytesPerKind) / (mean_bytes + 1)),
                   kGetsMin, kGets);
    const KeyValueStore::ReadCounters before = store_->Reads();
    LatencyHistogram times;
    std::string value;
    ItemInfo info;
    for (uint64_t i = 0; i < rounds && !options_.interrupted(); ++i) {
      const int64_t start_ns = clock_.NowMonotonicNs();
      const absl::Status got = store_->Get(keys[i % keys.size()], value, info);
      times.Add(clock_.NowMonotonicNs() - start_ns);
      if (!got.ok() && !absl::IsNotFound(got)) return got;
    }
    if (times.count() == 0) return std::nullopt;
    const KeyValueStore::ReadCounters after = store_->Reads();
    GetFacts gets;
    gets.gets = times.count();
    gets.p50_us = Us(times.Percentile(0.5));
    gets.p99_us = Us(times.Percentile(0.99));
    gets.value_bytes = mean_bytes;
    const double count = static_cast<double>(gets.gets);
    gets.reads = static_cast<double>(after.reads - before.reads) / count;
    gets.read_bytes = static_cast<double>(after.read_bytes - before.read_bytes) / count;
    gets.torn_reads = after.torn_reads - before.torn_reads;
    gets.moved_items = after.moved_items - before.moved_items;
    gets.by_request = after.gets_by_request - before.gets_by_request;
    gets.location_hits = after.location_hits - before.location_hits;
    KVD_RETURN_IF_ERROR(MeasureFloor(gets));
    return gets;
  }

  // In the same moment: as many READs of as many bytes, and the checksum over as many.
  absl::Status MeasureFloor(GetFacts& gets) {
    const uint64_t bytes = static_cast<uint64_t>(std::llround(gets.read_bytes));
    gets.verify_us = LocalUs(bytes, [](const std::string& from, std::string& to) {
      const uint64_t sum = Checksum64(from.data(), from.size(), 1);
      std::memcpy(to.data(), &sum, std::min(to.size(), sizeof(sum)));
    });
    if (gets.reads <= 0 || bytes == 0) return absl::OkStatus();
    const uint64_t bytes_per_read =
        (static_cast<uint64_t>(gets.read_bytes / gets.reads) + 7) / 8 * 8;
    LatencyHistogram times;
    const uint64_t rounds =
        std::clamp<uint64_t>(kBytesPerKind / (bytes_per_read + 1), kGetsMin, kFloorReads);
    for (uint64_t i = 0; i < rounds && !options_.interrupted(); ++i) {
      const absl::StatusOr<std::chrono::nanoseconds> read = store_->PlainRead(bytes_per_read);
      if (absl::IsUnimplemented(read.status())) {
        gets.floor_us = LocalUs(bytes, [](const std::string& from, std::string& to) {
          std::memcpy(to.data(), from.data(), from.size());
        });
        return absl::OkStatus();
      }
      facts_.over_rdma = true;
      if (!read.ok()) return absl::OkStatus();  // times stand by themselves then
      times.Add(read->count());
    }
    gets.floor_us = gets.reads * Us(times.Percentile(0.5));
    return absl::OkStatus();
  }

  // How long `work` takes over so many bytes that are in the cache, on average.
  template <typename Work>
  double LocalUs(uint64_t bytes, const Work& work) const {
    if (bytes == 0) return 0;
    const std::string from(bytes, 'x');
    std::string to(bytes, '\0');
    const uint64_t rounds = std::clamp<uint64_t>(kBytesPerKind / bytes, kGetsMin, kGets);
    work(from, to);
    const int64_t start_ns = clock_.NowMonotonicNs();
    for (uint64_t i = 0; i < rounds; ++i) {
      work(from, to);
      asm volatile("" : : "r"(to.data()) : "memory");  // each time anew
    }
    return static_cast<double>(clock_.NowMonotonicNs() - start_ns) / 1e3 /
           static_cast<double>(rounds);
  }

  absl::Status CleanUp() {
    absl::Status status;
    for (const std::string& key : written_) {
      const absl::Status deleted = store_->Delete(key, {});
      if (!deleted.ok() && !absl::IsNotFound(deleted)) status = deleted;
    }
    return status;
  }

  const PerfOptions& options_;
  const Clock& clock_;
  PerfFacts& facts_;
  KeyValueStore* store_ = nullptr;
  Sample sample_;
  std::vector<std::string> written_;
};

// Nanoseconds show where they matter.
std::string UsText(double us) { return absl::StrFormat(us < 1 ? "%.3f us" : "%.2f us", us); }

std::string TextOf(const GetFacts& gets, bool over_rdma) {
  std::string text = absl::StrFormat("p50 %s, p99 %s; %.2f %s of %.0f B together",
                                     UsText(gets.p50_us), UsText(gets.p99_us), gets.reads,
                                     over_rdma ? "READs" : "reads", gets.read_bytes);
  if (gets.floor_us > 0) {
    absl::StrAppend(&text,
                    over_rdma ? "; as many plain READs take " : "; to copy as many bytes takes ",
                    UsText(gets.floor_us));
    // A copy of bytes that are in the cache is no way to the server, which loads them from memory.
    if (over_rdma)
      absl::StrAppendFormat(&text, ", so this is %.1f times that", gets.p50_us / gets.floor_us);
  }
  absl::StrAppend(&text, "; verification ", UsText(gets.verify_us));
  if (gets.floor_us > 0) {
    absl::StrAppend(&text, ", the rest ",
                    UsText(std::max(0.0, gets.p50_us - gets.floor_us - gets.verify_us)));
  }
  absl::StrAppend(&text, "; torn ", gets.torn_reads, ", moved ", gets.moved_items, ", by request ",
                  gets.by_request);
  return text;
}

void AddGets(const char* what, const std::optional<GetFacts>& gets, bool over_rdma,
             DoctorReport& report, const std::string& more = "") {
  if (!gets.has_value()) return;
  report.AddOk(what, absl::StrCat(gets->gets, " GETs", more, ": ", TextOf(*gets, over_rdma)));
}

std::string ValuesOf(const GetFacts& gets) {
  return absl::StrCat(" of values of ",
                      FormatBytes(static_cast<uint64_t>(std::llround(gets.value_bytes))));
}

}  // namespace

PerfOutcome MeasurePerf(const PerfOptions& options, const Clock& clock, PerfFacts& facts) {
  return PerfProbe(options, clock, facts).Run();
}

void ReportPerf(const PerfFacts& facts, const PerfOptions& options, DoctorReport& report) {
  const bool rdma = facts.over_rdma;
  if (facts.cold.has_value()) {
    AddGets("GET, cold", facts.cold, rdma, report, ValuesOf(*facts.cold));
  }
  if (facts.known.has_value()) {
    AddGets("GET, known", facts.known, rdma, report,
            absl::StrFormat(" with a location cache, %.1f %% of which it answered",
                            100 * static_cast<double>(facts.known->location_hits) /
                                static_cast<double>(facts.known->gets)));
  }
  if (facts.large.has_value()) {
    AddGets("GET, large", facts.large, rdma, report, ValuesOf(*facts.large));
  }
  AddGets("GET, missed", facts.miss, rdma, report, " of keys that are not there");
  report.AddOk("request", absl::StrCat("p50 ", UsText(facts.request_p50_us), ", p99 ",
                                       UsText(facts.request_p99_us), ": a request and its answer"));
  if (!facts.cold.has_value() && !facts.large.has_value() && !options.interrupted()) {
    report.Add({"GET", verbs::CheckOutcome::kWarning,
                "the store has no item: how long a GET takes that finds one, its READs and its "
                "bytes cannot be measured",
                "give --write, which puts some items of its own and deletes them"});
  }
  std::vector<verbs::CheckResult> causes = JudgeAll(facts);
  if (causes.empty()) {
    report.AddOk("causes", "none found of what makes GETs slow");
  }
  for (verbs::CheckResult& cause : causes) report.Add(std::move(cause));
}

}  // namespace kvd::cli
