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
    for (const uint64_t size : kSizes) {
      if (options_.interrupted()) return;
      if (max_value_bytes_.has_value() && size > *max_value_bytes_) {
        report_.AddOk(absl::StrCat("READ ", FormatBytes(size)),
                      absl::StrCat("not tried: the server's --max_value is ",
                                   FormatBytes(*max_value_bytes_)));
        continue;
      }
      if (!CheckSize(size)) return;
    }
  }

 private:
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

  // False: nothing more is worth trying.
  bool CheckSize(uint64_t size) {
    const std::string key = absl::StrCat(options_.key_prefix, size);
    const std::string value = RandomBytes(random_, size);
    const bool goes_on = CheckPut(key, value) && CheckRead(key, value);
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
      if (!put.ok()) return Fail(check, put.status());
    }
    AddTimed(check, "acknowledged", times, options_.expected.put.ForBytes(value.size()));
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
    AddTimed(check, absl::StrCat(times.size(), " times the bytes that were put"), times,
             options_.expected.read.ForBytes(value.size()));
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

  void AddTimed(const std::string& check, std::string_view what, std::vector<double>& times,
                double expected_us) {
    if (times.empty()) return;
    const double median = Median(times);
    verbs::CheckResult result;
    result.check = check;
    result.found = absl::StrCat(
        absl::string_view(what.data(), what.size()),
        absl::StrFormat(", %.1f us in the median, up to %.1f us expected", median, expected_us));
    if (median > expected_us) {
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

  double MicrosecondsSince(int64_t start_ns) const {
    return static_cast<double>(clock_.NowMonotonicNs() - start_ns) / 1e3;
  }

  KeyValueStore& store_;
  const Clock& clock_;
  const ServerCheckOptions& options_;
  DoctorReport& report_;
  Random random_;
  std::optional<uint64_t> max_value_bytes_;
};

}  // namespace

// A few times what an idle machine needs, so that a warning means something: the first request
// after a pause wakes a poller, and a value outside of its bucket takes two round trips.
ExpectedTimes ExpectedOverSharedMemory() { return {{20, 500}, {500, 200}}; }

ExpectedTimes ExpectedOverRdma(double speed_gbps) {
  constexpr double kSpeedIfUnknownGbps = 10;
  constexpr double kShareOfLink = 0.25;
  const double gbps = speed_gbps > 0 ? speed_gbps : kSpeedIfUnknownGbps;
  const double bytes_per_us = gbps * 1000 / 8 * kShareOfLink;
  return {{30, bytes_per_us}, {100, bytes_per_us}};
}

ExpectedTimes ExpectedOverSoftRdma() { return {{500, 50}, {1000, 50}}; }

void CheckServer(KeyValueStore& store, const Clock& clock, const ServerCheckOptions& options,
                 DoctorReport& report) {
  ServerCheck(store, clock, options, report).Run();
}

}  // namespace kvd::cli
