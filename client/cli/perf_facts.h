// What doctor --perf knows when it judges: everything measured or looked up, and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvd::cli {

// GETs of one kind, all of which were right.
struct GetFacts {
  uint64_t gets = 0;
  double p50_us = 0;
  double p99_us = 0;
  double value_bytes = 0;  // on average
  // Of one GET, on average.
  double reads = 0;
  double read_bytes = 0;
  // All together.
  uint64_t torn_reads = 0;
  uint64_t moved_items = 0;
  uint64_t by_request = 0;  // that the server had to answer
  uint64_t location_hits = 0;
  // As many plain READs of as many bytes, one after the other, in the median; over shared memory,
  // where there are none, a copy of as many bytes. 0: not known.
  double floor_us = 0;
  // The checksum over as many bytes, on this machine's processor.
  double verify_us = 0;
};

// What the kernel counts of the thread that measures.
struct OwnProcessor {
  uint64_t queued_us = 0;  // ready to run and not running
  uint64_t put_off = 0;    // times that another thread was given its processor
};

struct PerfFacts {
  bool over_rdma = false;

  // Nothing: there is no such item.
  std::optional<GetFacts> cold;   // of values up to kPerfSmallBytes, whose location is not known
  std::optional<GetFacts> known;  // the same, with a location cache
  std::optional<GetFacts> large;  // of longer values, cold
  std::optional<GetFacts> miss;   // of a key that is not there
  double request_p50_us = 0;
  double request_p99_us = 0;

  // As the server says; empty or 0 where it does not.
  std::string page_kind;
  std::string page_fallback;
  std::string poll_mode;
  std::string region_node;  // "0"; "any"
  uint64_t server_mtu_bytes = 0;
  uint64_t items = 0;
  uint64_t local_items = 0;
  uint64_t buckets = 0;
  uint64_t overflow_headers = 0;

  // This machine.
  uint64_t mapped_page_bytes = 0;  // of the region in this process; 0: it is not mapped
  int cpu_node = -1;               // of the processor that measured; -1: not known
  std::string device;              // empty: none, or not known which
  int device_node = -1;
  uint64_t device_mtu_bytes = 0;
  bool device_is_software = false;
  std::string governor;  // of that processor; empty: it has none
  // Port counters that mean loss and that grew meanwhile: "mlx5_0/1 out_of_sequence".
  std::vector<std::pair<std::string, uint64_t>> losses;

  // Who had the processors meanwhile.
  double measured_s = 0;           // how long that took
  uint64_t server_queued_us = 0;   // kvd's pollers, ready to run and not running; 0: or not known
  uint64_t server_stalled_us = 0;  // awake and without a processor for 1 ms or longer, why ever
  OwnProcessor own;
  // This machine, at the end; less than 0: not known.
  double pressure_percent = -1;  // of the last 10 s, in which somebody waited for a processor
  double load = -1;              // of the last minute
  unsigned processors = 0;       // that this process may use; 0: not known
};

inline constexpr uint64_t kPerfSmallBytes = 4096;

}  // namespace kvd::cli
