#include "client/bench/kvbench/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace kvd::bench {
namespace {

std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

double ClockNs() {
  constexpr int kReadings = 20'000;
  const Clock& clock = RealClock::Get();
  const int64_t begin_ns = clock.NowMonotonicNs();
  int64_t end_ns = begin_ns;
  for (int i = 0; i < kReadings; ++i) end_ns = clock.NowMonotonicNs();
  return static_cast<double>(end_ns - begin_ns) / kReadings;
}

}  // namespace

Machine ThisMachine() {
  Machine machine;
  machine.cpu = CpuModel();
  machine.cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  machine.page_bytes = ::sysconf(_SC_PAGESIZE);
  utsname system{};
  if (::uname(&system) == 0) machine.kernel = absl::StrCat(system.sysname, " ", system.release);
  machine.clock_ns = ClockNs();
  return machine;
}

}  // namespace kvd::bench
