#include "client/cli/doctor_server.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/build_info.h"
#include "common/base/random.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

using verbs::CheckOutcome;

// The sizes at which paths break: within one packet, just over one of an Ethernet MTU, over an
// InfiniBand MTU, more packets than a queue holds, chunks.
constexpr uint64_t kSizes[] = {64, 2 * kKiB, 8 * kKiB, 64 * kKiB, kMiB, 4 * kMiB};

// Bytes to move per size, within bounds, so that small ones get a median worth its name.
constexpr uint64_t kReadBytesPerSize = 16 * kMiB;
constexpr uint64_t kRoundsMin = 4;
constexpr uint64_t kRoundsMax = 200;
constexpr uint64_t kPutBytesPerSize = 4 * kMiB;
constexpr uint64_t kPutsMax = 20;

std::string RandomBytes(Random& random, uint64_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

double Median(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

class ServerCheck {
 public:
  ServerCheck(KeyValueStore& store, const Clock& clock, const ServerCheckOptions& options,
              DoctorReport& report)
      : store_(store), clock_(clock), options_(options), report_(report), random_(options.seed) {}

  void Run() {
    if (!CheckAdmitted()) return;
    MeasureFloor();
    if (evicts_) TellOfEviction();
    for (const uint64_t size : kSizes) {
      if (options_.interrupted()) return;
      if (const std::string why = WhyNotTried(size); !why.empty()) {
        report_.AddOk(absl::StrCat("READ ", FormatBytes(size)), absl::StrCat("not tried: ", why));
        continue;
      }
      if (!CheckSize(size)) return;
    }
  }

 private:
  // Empty: values of that size are tried.
  std::string WhyNotTried(uint64_t size) const {
    if (max_value_bytes_.has_value() && size > *max_value_bytes_) {
      return absl::StrCat("the server's --max_value is ", FormatBytes(*max_value_bytes_));
    }
    if (evicts_ && !options_.large_values && size > kValueBytesWithoutHarm) {
      return "the server may evict items for it; --large_values tries it";
    }
    return "";
  }

  void TellOfEviction() {
    report_.AddOk("evict",
                  options_.large_values
                      ? "the server evicts (--evict=lru): room for the long values below "
                        "may have cost it items, some MiB of them for each"
                      : absl::StrCat("the server evicts (--evict=lru), so nothing over ",
                                     FormatBytes(kValueBytesWithoutHarm),
                                     " is put there: a full one may lose a few items to that, and "
                                     "would lose many to more"));
  }

  // False: the server does not answer.
  bool CheckAdmitted() {
    const absl::StatusOr<std::chrono::nanoseconds> ping = store_.Ping();
    if (!ping.ok()) return Fail("admitted", ping.status());
    const absl::StatusOr<KeyValueStore::Statistics> statistics = store_.Stats();
    if (!statistics.ok()) return Fail("admitted", statistics.status());
    std::string version;
    std::string pid;
    for (const auto& [name, value] : *statistics) {
      uint64_t number = 0;
      if (name == "version") version = value;
      if (name == "pid") pid = value;
      if (name == "evict") evicts_ = value != "none";
      if (name == "max_value_bytes" && absl::SimpleAtoi(value, &number)) max_value_bytes_ = number;
    }
    report_.AddOk(
        "admitted",
        absl::StrCat("kvd ", version, ", pid ", pid, ", answers within ",
                     absl::StrFormat("%.1f us", static_cast<double>(ping->count()) / 1e3)));
    if (version != Version()) {
      report_.Add({"version", CheckOutcome::kWarning,
                   absl::StrCat("kvd is ", version, ", kvcli is ",
                                absl::string_view(Version().data(), Version().size())),
                   "use a kvcli and a kvd of the same version"});
    }
    return true;
  }

  // What every PUT takes at least, and what a READ of 64 bytes does.
  void MeasureFloor() {
    std::vector<double> reads;
    std::vector<double> trips;
    for (uint64_t i = 0; i < kRoundsMax && !options_.interrupted(); ++i) {
      const absl::StatusOr<std::chrono::nanoseconds> read = store_.PlainRead(kSizes[0]);
      if (absl::IsUnimplemented(read.status())) return;
      is_rdma_ = true;
      if (!read.ok()) return NoFloor(read.status());
      reads.push_back(Microseconds(*read));
      if (i >= kPutsMax) continue;
      const absl::StatusOr<std::chrono::nanoseconds> trip = store_.Ping();
      if (!trip.ok()) return NoFloor(trip.status());
      trips.push_back(Microseconds(*trip));
    }
    if (reads.empty()) return;
    trip_us_ = Median(trips);
    report_.AddOk("floor",
                  absl::StrFormat("a plain READ of 64 B takes %.1f us in the median, a request and "
                                  "its answer %.1f us; ib_read_lat shows what the devices can do",
                                  Median(reads), *trip_us_));
  }

  void NoFloor(const absl::Status& status) {
    report_.Add({"floor", CheckOutcome::kWarning,
                 absl::StrCat("times are compared with nothing: no plain READ: ",
                              std::string(status.message())),
                 "see whether kvd takes another client (--max_clients)"});
  }

  // The median of so many plain READs of that size; nothing where there is no floor.
  std::optional<double> PlainReadUs(uint64_t bytes, uint64_t rounds) {
    std::vector<double> times;
    while (trip_us_.has_value() && times.size() < rounds && !options_.interrupted()) {
      const absl::StatusOr<std::chrono::nanoseconds> read = store_.PlainRead(bytes);
      if (!read.ok()) return std::nullopt;
      times.push_back(Microseconds(*read));
    }
    return times.empty() ? std::nullopt : std::optional(Median(times));
  }

  // False: nothing more is worth trying.
  bool CheckSize(uint64_t size) {
    const std::string key = absl::StrCat(options_.key_prefix, size);
    const std::string value = RandomBytes(random_, size);
    const bool goes_on = CheckPut(key, value) && CheckRead(key, value);
    if (may_not_write_) return false;
    const absl::Status deleted = store_.Delete(key);
    if (deleted.ok() || absl::IsNotFound(deleted)) return goes_on;
    report_.Add({"clean up", CheckOutcome::kWarning,
                 absl::StrCat("the key ", key, " may be left: ", std::string(deleted.message())),
                 absl::StrCat("kvcli del ", key)});
    return false;
  }

  bool CheckPut(const std::string& key, const std::string& value) {
    const std::string check = absl::StrCat("PUT ", FormatBytes(value.size()));
    std::vector<double> times;
    const uint64_t rounds = std::clamp(kPutBytesPerSize / value.size(), kRoundsMin, kPutsMax);
    for (uint64_t i = 0; i < rounds && !options_.interrupted(); ++i) {
      const int64_t start = clock_.NowMonotonicNs();
      const absl::StatusOr<uint64_t> put = store_.Put(key, value);
      times.push_back(MicrosecondsSince(start));
      may_not_write_ = i == 0 && absl::IsPermissionDenied(put.status());
      if (!put.ok()) return Fail(check, put.status());
    }
    const std::optional<double> pull_us = PlainReadUs(value.size(), kRoundsMin);
    if (pull_us.has_value()) {
      AddTimed(check, "acknowledged", times, *trip_us_ + *pull_us,
               "a request and a READ of as many bytes");
    } else {
      AddUntimed(check, "acknowledged", times, RuleOfThumbUs(/*put=*/true, value.size()));
    }
    return true;
  }

  bool CheckRead(const std::string& key, const std::string& value) {
    const std::string check = absl::StrCat("READ ", FormatBytes(value.size()));
    const uint64_t rounds = std::clamp(kReadBytesPerSize / value.size(), kRoundsMin, kRoundsMax);
    const uint64_t by_request_before = store_.GetsByRequest();
    std::vector<double> times;
    std::string read;
    ItemInfo info;
    for (uint64_t i = 0; i < rounds && !options_.interrupted(); ++i) {
      const int64_t start = clock_.NowMonotonicNs();
      const absl::Status got = store_.Get(key, read, info);
      times.push_back(MicrosecondsSince(start));
      if (absl::IsNotFound(got)) {
        report_.Add({check, CheckOutcome::kFailed, "a value that was acknowledged is not there",
                     "report this"},
                    ExitCode::kCorrupt);
        return true;
      }
      if (!got.ok()) return Fail(check, got);
      if (read != value) return FailCompared(check, read, value);
    }
    if (times.empty()) return true;
    const uint64_t by_request = store_.GetsByRequest() - by_request_before;
    if (by_request > 0) {
      report_.Add({check, CheckOutcome::kWarning,
                   absl::StrCat(by_request, " of ", times.size(),
                                " were answered by the server instead of read from its memory"),
                   "see 'kvcli stat' for how many clients write at this moment"});
      return true;
    }
    const std::string what = absl::StrCat(times.size(), " times the bytes that were put");
    const std::optional<double> floor_us = PlainReadUs(value.size(), rounds);
    if (floor_us.has_value()) {
      AddTimed(check, what, times, *floor_us, "a plain READ of as many bytes");
    } else {
      AddUntimed(check, what, times, RuleOfThumbUs(/*put=*/false, value.size()));
    }
    return true;
  }

  bool FailCompared(const std::string& check, const std::string& read, const std::string& value) {
    const size_t common = std::min(read.size(), value.size());
    const auto differs =
        std::mismatch(value.begin(), value.begin() + static_cast<ptrdiff_t>(common), read.begin());
    report_.Add({check, CheckOutcome::kFailed,
                 absl::StrCat("got ", read.size(), " bytes of ", value.size(),
                              ", different from byte ", differs.first - value.begin(), " on"),
                 "test this machine's and the server's memory, and report this"},
                ExitCode::kCorrupt);
    return false;
  }

  // Beside what was measured a moment ago.
  void AddTimed(const std::string& check, const std::string& what, std::vector<double>& times,
                double floor_us, const char* floor) {
    if (times.empty()) return;
    const double median = Median(times);
    AddJudged(
        check,
        absl::StrCat(what, Format(median), absl::StrFormat(", %.1f times ", median / floor_us),
                     floor, absl::StrFormat(" (%.1f us)", floor_us)),
        median > kTimesTheFloorMax * floor_us);
  }

  // Where there is nothing to measure against.
  void AddUntimed(const std::string& check, const std::string& what, std::vector<double>& times,
                  double usual_us) {
    if (times.empty()) return;
    const double median = Median(times);
    if (is_rdma_) return AddJudged(check, absl::StrCat(what, Format(median)), false);
    AddJudged(check,
              absl::StrCat(what, Format(median),
                           absl::StrFormat(", by rule of thumb under %.0f us", usual_us)),
              median > usual_us);
  }

  static std::string Format(double median_us) {
    return absl::StrFormat(", %.1f us in the median", median_us);
  }

  void AddJudged(const std::string& check, std::string found, bool slow) {
    verbs::CheckResult result;
    result.check = check;
    result.found = std::move(found);
    if (slow) {
      result.outcome = CheckOutcome::kWarning;
      result.remedy =
          "see whether either machine is busy, saves power or is emulated, and whether the link "
          "loses packets";
    }
    report_.Add(std::move(result));
  }

  // Always false: the server's errors end the checks.
  bool Fail(const std::string& check, const absl::Status& status) {
    report_.AddFailed(check, StoreFailure(status));
    return false;
  }

  static double Microseconds(std::chrono::nanoseconds time) {
    return static_cast<double>(time.count()) / 1e3;
  }

  double MicrosecondsSince(int64_t start_ns) const {
    return static_cast<double>(clock_.NowMonotonicNs() - start_ns) / 1e3;
  }

  KeyValueStore& store_;
  const Clock& clock_;
  const ServerCheckOptions& options_;
  DoctorReport& report_;
  Random random_;
  std::optional<uint64_t> max_value_bytes_;
  bool evicts_ = false;
  bool is_rdma_ = false;
  bool may_not_write_ = false;     // so nothing is left, and nothing more worth trying
  std::optional<double> trip_us_;  // a request's, over RDMA; nothing: there is no floor
};

}  // namespace

void CheckServer(KeyValueStore& store, const Clock& clock, const ServerCheckOptions& options,
                 DoctorReport& report) {
  ServerCheck(store, clock, options, report).Run();
}

}  // namespace kvd::cli
