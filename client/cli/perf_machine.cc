#include "client/cli/perf_machine.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/string_view.h"
#include "common/base/units.h"

namespace kvd::cli {
namespace {

namespace fs = std::filesystem;

// Names in a folder; none if it cannot be read.
std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::end(entry);
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string OneWord(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// "Rss:      4096 kB" for "Rss:".
bool TakeKib(const std::string& line, std::string_view name, uint64_t& bytes) {
  if (!line.starts_with(name)) return false;
  std::istringstream rest(line.substr(name.size()));
  uint64_t kib = 0;
  if (!(rest >> kib)) return false;
  bytes = kib * kKiB;
  return true;
}

}  // namespace

std::string ReadTextFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  // Not by iterators: of a file that opens and may not be read they throw.
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int NodeOfCpu(unsigned cpu, const std::string& root) {
  for (const std::string& name : NamesIn(absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu))) {
    int node = -1;
    if (name.starts_with("node") && absl::SimpleAtoi(name.substr(4), &node)) return node;
  }
  return -1;
}

std::string GovernorOf(unsigned cpu, const std::string& root) {
  return OneWord(ReadTextFile(
      absl::StrCat(root, "/sys/devices/system/cpu/cpu", cpu, "/cpufreq/scaling_governor")));
}

OwnProcessor ReadOwnProcessor(const std::string& root) {
  OwnProcessor own;
  std::istringstream times(ReadTextFile(root + "/proc/thread-self/schedstat"));
  uint64_t ran_ns = 0, queued_ns = 0;
  if (times >> ran_ns >> queued_ns) own.queued_us = queued_ns / 1000;
  std::istringstream lines(ReadTextFile(root + "/proc/thread-self/status"));
  for (std::string name; lines >> name;) {
    uint64_t count = 0;
    if (name == "nonvoluntary_ctxt_switches:" && lines >> count) own.put_off = count;
  }
  return own;
}

OwnProcessor Between(const OwnProcessor& before, const OwnProcessor& after) {
  return {after.queued_us - std::min(after.queued_us, before.queued_us),
          after.put_off - std::min(after.put_off, before.put_off)};
}

double CpuPressurePercent(const std::string& root) {
  constexpr std::string_view kTenSeconds = "avg10=";
  std::istringstream words(ReadTextFile(root + "/proc/pressure/cpu"));
  std::string word;
  double percent = 0;
  if (words >> word && word == "some" && words >> word && word.starts_with(kTenSeconds) &&
      absl::SimpleAtod(word.substr(kTenSeconds.size()), &percent)) {
    return percent;
  }
  return -1;
}

double LoadOfLastMinute(const std::string& root) {
  std::istringstream words(ReadTextFile(root + "/proc/loadavg"));
  double load = 0;
  return words >> load ? load : -1;
}

PortCounters ReadPortCounters(const std::string& root) {
  PortCounters counters;
  const std::string devices = root + "/sys/class/infiniband";
  for (const std::string& device : NamesIn(devices)) {
    const std::string ports = absl::StrCat(devices, "/", device, "/ports");
    for (const std::string& port : NamesIn(ports)) {
      for (const char* kind : {"counters", "hw_counters"}) {
        const std::string folder = absl::StrCat(ports, "/", port, "/", kind);
        for (const std::string& name : NamesIn(folder)) {
          uint64_t value = 0;
          if (!absl::SimpleAtoi(OneWord(ReadTextFile(absl::StrCat(folder, "/", name))), &value)) {
            continue;
          }
          counters[absl::StrCat(device, "/", port, " ", name)] = value;
        }
      }
    }
  }
  return counters;
}

bool CountsLoss(std::string_view name) {
  static constexpr std::string_view kParts[] = {
      "out_of_seq", "seq_err",      "retry",        "timeout",      "retrans",
      "rnr_nak",    "rnr_err",      "duplicate_re", "discard",      "link_downed",
      "lost",       "symbol_error", "rcv_errors",   "slow_restart", "drop",
  };
  return std::any_of(std::begin(kParts), std::end(kParts), [name](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  });
}

std::vector<std::pair<std::string, uint64_t>> LossesBetween(const PortCounters& before,
                                                            const PortCounters& after) {
  std::vector<std::pair<std::string, uint64_t>> losses;
  for (const auto& [name, count] : after) {
    const auto known = before.find(name);
    if (known == before.end() || count <= known->second || !CountsLoss(name)) continue;
    losses.emplace_back(name, count - known->second);
  }
  return losses;
}

uint64_t MappedPageBytes(std::string_view smaps, std::string_view file_name) {
  std::istringstream lines{std::string(smaps)};
  bool within = false;
  uint64_t page_bytes = 0;
  uint64_t resident = 0;
  uint64_t huge = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find('-');
    if (dash != std::string::npos && dash < 17 &&
        line.find_first_not_of("0123456789abcdef") == dash) {
      within = line.find(file_name) != std::string::npos;
      continue;
    }
    uint64_t bytes = 0;
    if (!within) continue;
    if (TakeKib(line, "KernelPageSize:", bytes)) page_bytes = std::max(page_bytes, bytes);
    if (TakeKib(line, "Rss:", bytes)) resident += bytes;
    if (TakeKib(line, "ShmemPmdMapped:", bytes) || TakeKib(line, "FilePmdMapped:", bytes)) {
      huge += bytes;
    }
  }
  return huge > 0 && huge * 2 >= resident ? 2 * kMiB : page_bytes;
}

}  // namespace kvd::cli
