// How pollers came by their processors.
#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/layout/units.h"
#include "server/operations/statistics.h"

namespace kvd {
namespace {

// "0", "1" ...: labels are views.
struct Numerals {
  struct Numeral {
    std::array<char, 8> digits{};
    size_t length = 0;
  };
  std::array<Numeral, kShardsMax> all;

  Numerals() {
    for (size_t i = 0; i < all.size(); ++i) {
      char* const begin = all[i].digits.data();
      all[i].length =
          static_cast<size_t>(std::to_chars(begin, begin + all[i].digits.size(), i).ptr - begin);
    }
  }
  std::string_view operator[](size_t i) const { return {all[i].digits.data(), all[i].length}; }
};

uint64_t Microseconds(uint64_t ns) { return ns / 1000; }

}  // namespace

uint64_t ReadQueuedNs(int thread_id, const std::string& root) {
  std::ifstream file(absl::StrCat(root, "/proc/self/task/", thread_id, "/schedstat"));
  uint64_t ran_ns = 0, queued_ns = 0;
  return file >> ran_ns >> queued_ns ? queued_ns : 0;
}

void AddStalls(std::span<const PollerProcessor> pollers, StatisticList& list) {
  static const Numerals numerals;
  uint64_t stalls = 0, stalled_us = 0, longest_us = 0, queued_us = 0;
  for (size_t i = 0; i < pollers.size(); ++i) {
    const RequestCounters& counters = *pollers[i].counters;
    const auto of_poller = [&](std::string_view name, std::string_view help, bool is_time) {
      return Metric{.name = name,
                    .help = help,
                    .label = "poller",
                    .label_value = numerals[i],
                    .is_microseconds = is_time};
    };
    const uint64_t longest = Microseconds(counters.longest_stall_ns.get());
    const uint64_t stalled = Microseconds(counters.stalled_ns.get());
    const uint64_t queued = Microseconds(pollers[i].queued_ns);
    stalls += counters.stalls.get();
    stalled_us += stalled;
    longest_us = std::max(longest_us, longest);
    queued_us += queued;
    list.Counter("", counters.stalls.get(),
                 of_poller("kvd_poller_stalls_total",
                           "Times of 1 ms or longer in which a poller that was awake, or was to "
                           "wake, had no processor.",
                           false));
    list.Counter("", stalled,
                 of_poller("kvd_poller_stalled_seconds_total", "Time of these, together.", true));
    list.Gauge("", longest,
               of_poller("kvd_poller_longest_stall_seconds", "The longest of these.", true));
    list.Counter("", queued,
                 of_poller("kvd_poller_queued_seconds_total",
                           "Time in which a poller was ready to run and another thread had its "
                           "processor, by the kernel's count.",
                           true));
  }
  list.Counter("poller_stalls", stalls);
  list.Counter("poller_stalled_us", stalled_us);
  list.Gauge("poller_longest_stall_us", longest_us);
  list.Counter("poller_queued_us", queued_us);
}

}  // namespace kvd
